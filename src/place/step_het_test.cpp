// Steps over several components, as recorded.
#include "place/step_het.h"

#include <gtest/gtest.h>

#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

using corpus::Job;
using corpus::On;

TEST(HetStep, BothComponentsOfAJob) {
  const cluster::Cluster cluster = corpus::make();
  Job first(cluster, "-n1 --mem=1G --gres=gpu:1 -w gpu1",
            {{"gpu1", Bits::of({0}), Bits::of({0}), 1024, {}}});
  Job second(cluster, "-n2 --mem=1G -w cpu1", {{"cpu1", Bits::of({0}), {}, 1024, {}}});
  const std::vector<StepPlan> parts = {first.plan(""), second.plan("")};
  const StepPlan plan = join_components(parts);
  const JobFacts job = join_jobs(std::vector<JobFacts>{first.facts(), second.facts()});
  EXPECT_EQ(corpus::ranks(cluster, plan), "gpu1:0 cpu1:1,2");
  EXPECT_EQ(corpus::masks(plan), "1,1,2");
  const Environment script = het_batch_environment(cluster, {first.facts(), second.facts()});
  const Environment env = task_environment(cluster, job, plan, plan.tasks[2], script);
  EXPECT_EQ(env.at("SLURM_NODEID"), "1");
  EXPECT_EQ(env.at("SLURM_PROCID"), "2");
  EXPECT_EQ(env.at("SLURM_LOCALID"), "1");
  EXPECT_EQ(env.at("SLURM_GTIDS"), "1,2");
  EXPECT_EQ(env.at("SLURM_NTASKS"), "3");
  EXPECT_EQ(env.at("SLURM_NNODES"), "2");
  EXPECT_EQ(env.at("SLURM_JOB_NODELIST"), "cpu1,gpu1");
  EXPECT_EQ(env.at("SLURM_STEP_NODELIST"), "cpu1,gpu1");
  EXPECT_EQ(env.at("SLURM_TASKS_PER_NODE"), "2,1");
  EXPECT_EQ(env.at("SLURM_MEM_PER_NODE"), "1024");
  EXPECT_EQ(env.at("SLURM_CPUS_ON_NODE"), "2");
  // The script's value gets through to a node without GPUs, as recorded; counts do not.
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_FALSE(env.contains("SLURM_GPUS_ON_NODE"));
  EXPECT_EQ(task_environment(cluster, job, plan, plan.tasks[0], script).at("CUDA_VISIBLE_DEVICES"),
            "0");
}

TEST(HetStep, SrunThatMadeSeveralJobs) {
  const cluster::Cluster cluster = corpus::make();
  Job a(cluster, "--mem=1G -n1 -w gpu2", {{"gpu2", Bits::of({0}), {}, 1024, {}}},
        request::Command::srun);
  Job b(cluster, "--mem=1G -n2 -w gpu3 --gres=gpu:1",
        {{"gpu3", Bits::of({0, 1}), Bits::of({0}), 1024, {}}}, request::Command::srun);
  const std::vector<StepPlan> parts = {place_own_step(cluster, a.facts(), a.facts().request),
                                       place_own_step(cluster, b.facts(), b.facts().request)};
  const StepPlan plan = join_components(parts, 1);
  EXPECT_EQ(corpus::ranks(cluster, plan), "gpu2:0 gpu3:1,2");
  EXPECT_EQ(corpus::gpus(plan), "|0|0");
  const JobFacts job = join_jobs(std::vector<JobFacts>{a.facts(), b.facts()});
  const Environment env = task_environment(cluster, job, plan, plan.tasks[1], {});
  EXPECT_EQ(env.at("SLURM_TASKS_PER_NODE"), "1,2");
  EXPECT_EQ(env.at("SLURM_JOB_NODELIST"), "gpu[2-3]");
  EXPECT_FALSE(env.contains("SLURM_MEM_PER_NODE"));
}

TEST(HetStep, ComponentsInAnOrdinaryJobKeepApart) {
  const cluster::Cluster cluster = corpus::make();
  std::vector<On> nodes;
  for (const char* name : {"gpu1", "gpu2", "gpu3", "gpu4"}) {
    nodes.push_back({name, Bits::first_n(4), {}, 65536, {}});
  }
  Job job(cluster, "-N4 -n16", nodes);
  job.state().rotation = 1;
  const auto parts = place_step_components(cluster, job.facts(),
                                           {job.srun("-n1"), job.srun("-n2 -N1")}, job.state());
  const StepPlan plan = join_components(parts);
  EXPECT_EQ(corpus::ranks(cluster, plan), "gpu2:0 gpu3:1,2");
  EXPECT_EQ(job.state().rotation, 3U);

  Job one(cluster, "-N1 -n4", {nodes.front()});
  const auto none =
      place_step_components(cluster, one.facts(), {one.srun("-n1"), one.srun("-n1")}, one.state());
  EXPECT_EQ(corpus::lines(join_components(none)),
            "srun: error: Allocation failure of 1 nodes: job size of 1, already allocated 1 nodes "
            "to previous components.");
}

}  // namespace
}  // namespace berth::place
