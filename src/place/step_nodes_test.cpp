// Numbers, nodes and rotation of steps: the tables and examples of spec placement-steps.md §1–§3.
#include "place/step_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

using corpus::Job;
using corpus::On;

/// gpu1 … gpuN with the same cores and GPUs.
std::vector<On> equal_nodes(int count, Bits cores, Bits gpus = {}, std::uint64_t memory = 1200) {
  std::vector<On> nodes;
  for (int i = 1; i <= count; ++i) {
    nodes.push_back({"gpu" + std::to_string(i), cores, gpus, memory, {}});
  }
  return nodes;
}

struct NodeRow {
  const char* srun;
  const char* ranks;
};

void expect_layouts(const cluster::Cluster& cluster, Job& job, const std::vector<NodeRow>& rows) {
  for (const NodeRow& row : rows) {
    job.state().rotation = 0;
    const StepPlan plan = job.run(row.srun);
    EXPECT_EQ(plan.verdict, StepVerdict::starts) << row.srun << ": " << corpus::lines(plan);
    EXPECT_EQ(corpus::ranks(cluster, plan), row.ranks) << row.srun;
  }
}

TEST(StepLayout, FourNodesOfFour) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N4 --ntasks-per-node=4", equal_nodes(4, Bits::first_n(4)));
  expect_layouts(cluster, job,
                 {
                     {"-n6", "gpu1:0,1 gpu2:2,3 gpu3:4 gpu4:5"},
                     {"-n6 -m cyclic", "gpu1:0,4 gpu2:1,5 gpu3:2 gpu4:3"},
                     {"-n6 -m pack", "gpu1:0,1,2,3 gpu2:4,5"},
                     {"-n10 -m plane=3", "gpu1:0,1,2 gpu2:3,4,5 gpu3:6,7,8 gpu4:9"},
                     {"-N2", "gpu1:0,1,2,3 gpu2:4,5,6,7"},
                     {"-N3 --ntasks-per-node=2", "gpu1:0,1 gpu2:2,3 gpu3:4,5"},
                     {"-N2 -n5", "gpu1:0,1,2 gpu2:3,4"},
                     {"-n4 -m arbitrary -w gpu3,gpu1,gpu3,gpu2", "gpu1:1 gpu2:3 gpu3:0,2"},
                 });
  StepPlan plan = job.plan("-n20 -O");
  EXPECT_EQ(task_environment(cluster, job.facts(), plan, plan.tasks[0], {})
                .at("SLURM_STEP_TASKS_PER_NODE"),
            "5(x4)");
  EXPECT_EQ(corpus::lines(job.plan("-n4 -m arbitrary -w gpu1,gpu2,gpu3")),
            "srun: error: You asked for 4 tasks but hostlist specified 3 nodes");
}

TEST(StepLayout, UnequalNodes) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N3 -n8",
          {{"gpu1", Bits::first_n(6), {}, 65536, {}},
           {"gpu2", Bits::of({0}), {}, 65536, {}},
           {"gpu3", Bits::of({0}), {}, 65536, {}}});
  expect_layouts(cluster, job,
                 {
                     {"-n8", "gpu1:0,1,2,3,4,5 gpu2:6 gpu3:7"},
                     {"-n8 -m cyclic", "gpu1:0,3,4,5,6,7 gpu2:1 gpu3:2"},
                     {"-n8 -m plane=2", "gpu1:0,1,4,5,6,7 gpu2:2 gpu3:3"},
                     {"-n4", "gpu1:0,1 gpu2:2 gpu3:3"},
                     {"-n4 -m pack", "gpu1:0,1 gpu2:2 gpu3:3"},
                 });
  EXPECT_EQ(job_tasks_per_node(cluster, job.facts()), (std::vector<std::uint32_t>{6, 1, 1}));
  EXPECT_EQ(job.plan("-N2 -n2 -c2").error.code, Code::too_many_cpus);
}

TEST(StepLayout, TaskCounts) {
  const cluster::Cluster cluster = corpus::make();
  Job bare(cluster, "-N4 --mem=1200", equal_nodes(4, Bits::of({0})));
  expect_layouts(cluster, bare,
                 {
                     {"", "gpu1:0 gpu2:1 gpu3:2 gpu4:3"},
                     {"-w gpu3", "gpu1:0 gpu2:1 gpu3:2 gpu4:3"},
                     {"-w gpu3 -N1", "gpu3:0"},
                     {"-x gpu4 -N2", "gpu1:0 gpu2:1"},
                     {"-n1", "gpu1:0"},
                     {"-N2-3", "gpu1:0 gpu2:1 gpu3:2"},
                 });
  EXPECT_EQ(bare.plan("-N2-3").distribution, "block");
  EXPECT_EQ(bare.plan("").distribution, "cyclic");
  EXPECT_EQ(bare.plan("--mem=0").distribution, "");

  Job pairs(cluster, "-N2 --ntasks-per-node=2", equal_nodes(2, Bits::first_n(2)));
  expect_layouts(cluster, pairs,
                 {{"", "gpu1:0,1 gpu2:2,3"}, {"-n1", "gpu1:0"}, {"-N1 -n2", "gpu1:0,1"}});

  Job one(cluster, "-n4", equal_nodes(1, Bits::of({0, 1, 8, 9})));
  EXPECT_EQ(one.plan("-N1").ntasks, 4U);
}

TEST(StepLayout, TasksPerGpuRaiseTheTasks) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n16 --gres=gpu:4",
          {{"gpu1", Bits::first_n(16), Bits::first_n(4), 65536, {}}});
  EXPECT_EQ(job.plan("-n4 --ntasks-per-gpu=2").ntasks, 8U);
  EXPECT_EQ(job.plan("--gpus=2 --ntasks-per-gpu=1").ntasks, 16U);
}

TEST(StepLayout, HostFiles) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N3 -n6", equal_nodes(3, Bits::first_n(4)));
  request::Request srun = job.srun("-n3");
  srun.distribution.emplace();
  srun.distribution->nodes = request::NodeDist::arbitrary;
  srun.distribution->text = "arbitrary";
  srun.nodelist = {"gpu2", "gpu1", "gpu2", "gpu3"};  // as a file gives it: longer is cut
  const StepPlan plan = place_step(cluster, job.facts(), srun, job.state());
  EXPECT_EQ(corpus::ranks(cluster, plan), "gpu1:1 gpu2:0,2") << corpus::lines(plan);
  EXPECT_EQ(plan.distribution, "arbitrary");
  srun.ntasks = 5;
  EXPECT_EQ(corpus::lines(place_step(cluster, job.facts(), srun, job.state())),
            "srun: error: Too few NodeNames in Slurm Hostfile\n"
            "srun: error: Failure getting NodeNames from hostfile");
}

TEST(StepWarnings, AreThoseOfSrun) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N4 -n16", equal_nodes(4, Bits::first_n(4)));
  const auto warning = [&](const char* line) {
    const StepPlan plan = job.plan(line);
    return plan.warnings.empty() ? "" : render(plan.warnings.front(), "srun");
  };
  EXPECT_EQ(warning("-n1"), "srun: warning: can't run 1 processes on 4 nodes, setting nnodes to 1");
  EXPECT_EQ(warning("-N1 -n1"), "");
  EXPECT_EQ(warning("--ntasks-per-node=2"),
            "srun: warning: can't honor --ntasks-per-node set to 2 which doesn't match the "
            "requested tasks 16 with the maximum number of requested nodes 4. Ignoring "
            "--ntasks-per-node.");
  const StepPlan ignored = job.plan("--ntasks-per-node=2");
  EXPECT_EQ(corpus::ranks(cluster, ignored),
            "gpu1:0,1,2,3 gpu2:4,5,6,7 gpu3:8,9,10,11 "
            "gpu4:12,13,14,15");
  EXPECT_EQ(warning("-n6 -m pack --ntasks-per-node=4"),
            "srun: warning: can't honor --ntasks-per-node set to 4 which doesn't match the "
            "requested tasks 6 and -mpack, which forces min number of nodes to 1");
}

TEST(StepNodes, Refusals) {
  const cluster::Cluster cluster = corpus::make();
  Job one(cluster, "-N1 -n2 --mem=1G -w gpu1", equal_nodes(1, Bits::of({0, 8}), {}, 1024));
  Job four(cluster, "-N4 -n4", equal_nodes(4, Bits::of({0})));
  const struct {
    Job& job;
    const char* srun;
    const char* lines;
  } rows[] = {
      {one, "-N2", "srun: error: Only allocated 1 nodes asked for 2"},
      {four, "-x gpu1,gpu2",
       "srun: error: Only allocated 2 nodes asked for 4\n"
       "srun: error: Are required nodes explicitly excluded?"},
      {four, "-r3 -N2 -n2",
       "srun: error: --relative and --nodes option incompatible with count of allocated nodes "
       "(3+2>4)"},
      {four, "-r1",
       "srun: error: --relative and SLURM_JOB_NUM_NODES option incompatible with count of "
       "allocated nodes (1+4>4)"},
      {one, "-n3",
       "srun: error: Unable to create step for job 7: More processors requested than permitted"},
      {one, "-w gpu9",
       "srun: error: Unable to create step for job 7: Requested node configuration is not "
       "available"},
      {one, "-w gpu2",
       "srun: error: Unable to create step for job 7: Requested node configuration is not "
       "available"},
      {four, "-n1 -c4",
       "srun: error: Unable to create step for job 7: More processors requested than permitted"},
      {one, "-n2 -c2",
       "srun: error: Unable to create step for job 7: More processors requested than permitted"},
      {one, "--mem=2G",
       "srun: error: Unable to create step for job 7: Memory required by task is not available"},
      {one, "--gres=gpu:1",
       "srun: error: Unable to create step for job 7: Invalid generic resource (gres) "
       "specification"},
      {one, "--mem-per-cpu=1G",
       "srun: error: Unable to create step for job 7: More processors requested than permitted"},
      {one, "-O -n600",
       "srun: error: Unable to create step for job 7: Task count specification invalid"},
  };
  for (const auto& row : rows) {
    const StepPlan plan = row.job.plan(row.srun);
    EXPECT_EQ(plan.verdict, StepVerdict::refused) << row.srun;
    EXPECT_EQ(corpus::lines(plan), row.lines) << row.srun;
    EXPECT_EQ(plan.error.exit_code, 1) << row.srun;
  }
}

TEST(StepNodes, TaskWiderThanAnyNodeWaitsWhenMemoryIsAsked) {
  const cluster::Cluster cluster = corpus::make();
  Job one(cluster, "-N1 -n2 --mem=1G -w gpu1", equal_nodes(1, Bits::of({0, 8}), {}, 1024));
  const StepPlan plan = one.plan("-c4");
  EXPECT_EQ(plan.verdict, StepVerdict::waits);
  EXPECT_NE(plan.waits_for.find("never"), std::string::npos) << plan.waits_for;
  EXPECT_EQ(one.plan("-c4 -I").verdict, StepVerdict::refused);
}

TEST(StepNodes, ThreadsBeyondTheJobs) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-n3 --threads-per-core=1", {{"cpu1", Bits::of({0, 1, 8}), {}, 65536, {}}});
  EXPECT_EQ(job.plan("-n1 --threads-per-core=2").error.code, Code::threads_per_core_over_job);
  const StepPlan plan = job.plan("");
  EXPECT_EQ(corpus::masks(plan), "1,10000,4");
  EXPECT_EQ(corpus::cpus(plan), 6U);
  const Environment batch = batch_environment(cluster, job.facts());
  EXPECT_EQ(batch.at("SLURM_JOB_CPUS_PER_NODE"), "3");
  EXPECT_EQ(batch.at("SLURM_CPUS_ON_NODE"), "3");
  EXPECT_EQ(
      task_environment(cluster, job.facts(), plan, plan.tasks[0], batch).at("SLURM_CPUS_ON_NODE"),
      "6");
}

TEST(StepNodes, SmallStepsRotate) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N4 -n16", equal_nodes(4, Bits::first_n(4)));
  job.state().rotation = 2;
  const NodeRow rows[] = {
      {"-N1 -n1", "gpu3"},
      {"-N1 -n1", "gpu4"},
      {"-N1 -n1", "gpu1"},
      {"-n1", "gpu2"},
      {"-r2 -N1 -n1", "gpu3"},
      {"-w gpu2,gpu4 -N2 -n2", "gpu2 gpu4"},
      {"-w gpu2 -N2 -n4", "gpu2 gpu4"},
      {"-n3 -c2", "gpu1 gpu2 gpu3"},
      {"-N2 -n2 -c3", "gpu1 gpu4"},
      {"-N2", "gpu2 gpu3"},
      {"-n3", "gpu1 gpu2 gpu4"},
  };
  for (const NodeRow& row : rows) {
    // without -n the job's 16 tasks would go on two nodes
    const std::string line = std::string(row.srun) == "-N2" ? "-N2 -n2" : row.srun;
    EXPECT_EQ(corpus::nodes(cluster, job.run(line)), row.ranks) << row.srun;
  }
}

TEST(StepNodes, RefusedAndWaitingStepsLeaveTheRotation) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N2 -n4", equal_nodes(2, Bits::first_n(2)));
  job.run("-N1 -n1");
  EXPECT_EQ(job.state().rotation, 1U);
  job.run("-N1 -n3");
  EXPECT_EQ(job.state().rotation, 1U);
  job.start("-N1 -n1");
  job.start("-N1 -n1");
  EXPECT_EQ(job.state().rotation, 1U);
  EXPECT_EQ(job.plan("-N1 -n1").verdict, StepVerdict::waits);
  EXPECT_EQ(job.state().rotation, 1U);
}

TEST(StepNodes, IdleNodesFirst) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N4 --ntasks-per-node=1 --mem=1G", equal_nodes(4, Bits::of({0}), {}, 1024));
  for (const char* node : {"gpu1", "gpu2", "gpu3", "gpu4"}) {
    EXPECT_EQ(corpus::nodes(cluster, job.start("-N1 -n1 --exact --mem=1G")), node);
  }
}

TEST(StepNodes, StepOnManyNodesIsAsLongAsTheRange) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N4 -n4", equal_nodes(4, Bits::of({0})));
  job.start("-w gpu1 -N1 -n1");
  const StepPlan plan = job.plan("-N2-4 -n4 -O");
  EXPECT_EQ(corpus::nodes(cluster, plan), "gpu2 gpu3 gpu4");
}

}  // namespace
}  // namespace berth::place
