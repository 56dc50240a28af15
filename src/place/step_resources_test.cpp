// What steps take and leave: exact and whole steps, memory, GPUs, waiting (spec §3, §4, §7).
#include "place/step_resources.h"

#include <gtest/gtest.h>

#include "place/local_ranks.h"
#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

using corpus::Job;
using corpus::On;

std::vector<On> nodes_with_gpus(int count, Bits cores, Bits gpus, std::uint64_t memory = 65536) {
  std::vector<On> nodes;
  for (int i = 1; i <= count; ++i) {
    nodes.push_back({"gpu" + std::to_string(i), cores, gpus, memory, {}});
  }
  return nodes;
}

std::string held_gpus(const StepPlan& plan) {
  std::string out;
  for (const StepNode& node : plan.nodes) {
    out += (out.empty() ? "" : " ") + node.share.gpus().list();
  }
  return out;
}

TEST(StepGpus, Counts) {
  const cluster::Cluster cluster = corpus::make();
  Job four(cluster, "-N4 --ntasks-per-node=4 --gres=gpu:2",
           nodes_with_gpus(4, Bits::first_n(4), Bits::of({0, 1})));
  Job tasks(cluster, "-N2 --ntasks-per-node=2 --gpus-per-task=1",
            nodes_with_gpus(2, Bits::of({0, 1}), Bits::of({0, 1})));
  Job per_node(cluster, "-N2 --ntasks-per-node=2 --gpus-per-node=2",
               nodes_with_gpus(2, Bits::of({0, 1}), Bits::of({0, 1})));
  const struct {
    Job& job;
    const char* srun;
    const char* held;
    const char* seen;
  } rows[] = {
      {four, "", "0,1 0,1 0,1 0,1",
       "0,1|0,1|0,1|0,1|0,1|0,1|0,1|0,1|0,1|0,1|0,1|0,1|0,1|0,1|0,1|0,1"},
      {four, "-N1 -n1", "0,1", "0,1"},
      {four, "-n3 --gpus=3", "0 0 0", "0|0|0"},
      {four, "--gpus=5 -n4", "0,1 0 0 0", "0,1|0|0|0"},
      {four, "--gpus=5 -n4 --overlap", "0 0 0 0,1", "0|0|0|0,1"},
      {four, "-n6 --gpus-per-task=1", "0,1 0,1 0 0", "0|1|0|1|0|0"},
      {four, "-n2 --gpus-per-task=2", "0,1 0,1", "0,1|0,1"},
      {four, "-n2 -N1 --gres=none", "", "|"},
      {tasks, "-n1", "0", "0"},
      {tasks, "-N1 -n1 --gpus=2", "0", "0"},
      {tasks, "-n1 --gpus-per-task=2", "0,1", "0"},
      {tasks, "-n4 --gpu-bind=none", "0,1 0,1", "0,1|0,1|0,1|0,1"},
      {per_node, "-n1 -N1 --exact --gpus-per-task=1", "0,1", "0"},
      {per_node, "-n1 -N1 --gpus=1", "0", "0"},
  };
  for (const auto& row : rows) {
    row.job.state().rotation = 0;
    const StepPlan plan = row.job.run(row.srun);
    EXPECT_EQ(plan.verdict, StepVerdict::starts) << row.srun << ": " << corpus::lines(plan);
    EXPECT_EQ(held_gpus(plan), row.held) << row.srun;
    EXPECT_EQ(corpus::gpus(plan), row.seen) << row.srun;
  }
}

TEST(StepGpus, InheritedTotalMustFit) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N2 -n4 --ntasks-per-node=2 --gpus=4 --mem=1G",
          {{"gpu1", Bits::of({0, 8}), Bits::of({0, 1, 3}), 1024, {}},
           {"gpu2", Bits::of({0, 8}), Bits::of({0}), 1024, {}}});
  EXPECT_EQ(corpus::gpus(job.run("")), "0,1,3|0,1,3|0|0");
  EXPECT_EQ(corpus::gpus(job.run("-n2")), "0,1,3|0");
  const StepPlan one = job.run("-N1 -n1 --gpus=1");
  EXPECT_EQ(corpus::nodes(cluster, one), "gpu1");
  EXPECT_EQ(corpus::gpus(one), "0");
  EXPECT_EQ(job.run("-N1 -n2 --gpus-per-task=1").error.code, Code::invalid_gres);
}

TEST(StepGpus, LeastMemoryIsOfAllThatTheJobHas) {
  cluster::Cluster cluster = corpus::make();
  const auto node = *cluster.find_node("gpu1");
  for (cluster::Device& device : cluster.nodes[node].gres.front().devices) device.memory_mb = 40960;
  cluster.nodes[node].gres.front().devices[1].memory_mb = 16384;
  Job job(cluster, "-N1 -n2 --mem=1G --gres=gpu:2",
          {{"gpu1", Bits::of({0, 1}), Bits::of({0, 1}), 1024, {}}});
  EXPECT_EQ(job.plan("-n1 --gpus=1 --gpu-mem-min=16G").verdict, StepVerdict::starts);
  const StepPlan refused = job.plan("-n1 --gpus=1 --gpu-mem-min=40G");
  EXPECT_EQ(refused.error.code, Code::invalid_gres);
  EXPECT_EQ(refused.error.hint,
            "GPU 1 of gpu1, which the job has, is not known to have 40G of memory: give "
            "--gpu-mem-min to the job");
}

TEST(StepGpus, TooMany) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n2 --mem=1G --gres=gpu:2",
          {{"gpu1", Bits::of({0, 1}), Bits::of({0, 1}), 1024, {}}});
  EXPECT_EQ(job.plan("-n1 --gres=gpu:3").error.code, Code::invalid_gres);
  EXPECT_EQ(job.plan("-n1 --gpus=3").error.code, Code::invalid_gres);
  EXPECT_EQ(job.plan("-n4 -O --gpus-per-task=1").error.code, Code::insufficient_gres);
  EXPECT_EQ(job.plan("-n1 --gres=gpu:tesla_v100:1").error.code, Code::invalid_gres);
  EXPECT_EQ(corpus::gpus(job.plan("-n1 --gres=gpu:a100:1")), "0");
  Job sixteen(cluster, "-N1 -n16 --gres=gpu:2",
              {{"gpu1", Bits::first_n(16), Bits::of({0, 1}), 65536, {}}});
  EXPECT_EQ(sixteen.plan("-n4 --gpus-per-task=1").error.code, Code::too_many_cpus);
  Job untyped(cluster, "-N1 -n1 --gres=gpu:1 -w gpu6",
              {{"gpu6", Bits::of({0}), Bits::of({0}), 65536, {}}});
  EXPECT_EQ(untyped.plan("-n1 --gres=gpu:a100:1").error.code, Code::invalid_gres);
  Job two(cluster, "-N2 --gres=gpu:1 --mem=1G",
          nodes_with_gpus(2, Bits::of({0}), Bits::of({0}), 1024));
  EXPECT_EQ(two.plan("--gpus=3").error.code, Code::invalid_gres);
}

TEST(StepGpus, NodesThatCameWholePassNoneOn) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 --exclusive", {{"gpu1", Bits::first_n(16), Bits::first_n(4), 65536, {}}});
  EXPECT_EQ(corpus::gpus(job.plan("")), "");
  EXPECT_EQ(batch_environment(cluster, job.facts()).at("CUDA_VISIBLE_DEVICES"), "0,1,2,3");
}

TEST(StepGpus, OneByOneOverTwoNodes) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N2 --ntasks-per-node=4 --gres=gpu:2",
          nodes_with_gpus(2, Bits::first_n(4), Bits::of({0, 1})));
  const char* expected[] = {"gpu1 0 1", "gpu2 0 1", "gpu1 1 2", "gpu2 1 2"};
  for (const char* row : expected) {
    const StepPlan plan = job.start("-N1 -n1 --exact --gres=gpu:1");
    EXPECT_EQ(corpus::nodes(cluster, plan) + " " + corpus::gpus(plan) + " " + corpus::masks(plan),
              row);
  }
  for (int i = 0; i < 2; ++i) {
    const StepPlan plan = job.start("-N1 -n1 --exact --gres=gpu:1");
    EXPECT_EQ(plan.verdict, StepVerdict::waits);
    EXPECT_EQ(plan.waits_for, "1 GPU on gpu1 (2 of 2 held by steps 0, 2)");
    EXPECT_EQ(plan.waits_for_steps, (std::vector<std::uint32_t>{0, 2, 1, 3}));
  }
}

TEST(StepGpus, TwoEachThenWait) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n4 --mem=4G --gres=gpu:4",
          {{"gpu1", Bits::of({0, 1, 8, 9}), Bits::first_n(4), 4096, {}}});
  const char* srun = "-n1 --exact --mem=1G --gres=gpu:2";
  StepPlan plan = job.start(srun);
  EXPECT_EQ(corpus::gpus(plan) + " " + corpus::masks(plan), "0,1 1");
  plan = job.start(srun);
  EXPECT_EQ(corpus::gpus(plan) + " " + corpus::masks(plan), "2,3 100");
  plan = job.start(srun);
  EXPECT_EQ(plan.waits_for, "2 GPUs on gpu1 (4 of 4 held by steps 0, 1)");
  job.state().finish(0);
  plan = job.start(srun);
  EXPECT_EQ(plan.id, 2U);
  EXPECT_EQ(corpus::gpus(plan) + " " + corpus::masks(plan), "0,1 1");
}

TEST(StepCores, NearTheGpus) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n16 --gres=gpu:8 -w gpu6",
          {{"gpu6", Bits::first_n(16), Bits::first_n(8), 65536, {}}});
  StepPlan plan = job.start("-n1 --exact --gres=gpu:2");
  EXPECT_EQ(corpus::gpus(plan) + " " + corpus::masks(plan), "0,1 1");
  plan = job.plan("-n2 --exact --gres=gpu:3");
  EXPECT_EQ(corpus::gpus(plan), "2,3,4|2,3,4");
  EXPECT_EQ(corpus::masks(plan), "2,100");
  Job busy(cluster, "-N1 -n16 --gres=gpu:8 -w gpu6",
           {{"gpu6", Bits::first_n(16), Bits::first_n(8), 65536, {}}});
  EXPECT_EQ(corpus::masks(busy.start("-n1 -c7 --gres=none")), "7f");
  plan = busy.plan("-n1 -c2 --gres=gpu:1");
  EXPECT_EQ(corpus::gpus(plan) + " " + corpus::masks(plan), "0 180");
  plan = busy.plan("-n1 -c2 --gres=gpu:1 --gres-flags=enforce-binding");
  EXPECT_EQ(plan.verdict, StepVerdict::waits);
}

TEST(StepCores, OneAfterTheOther) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n4", {{"gpu1", Bits::of({0, 1, 8, 9}), {}, 65536, {}}});
  for (const char* mask : {"1", "2", "100", "200"}) {
    EXPECT_EQ(corpus::masks(job.start("-n1 --exact")), mask);
  }
  const StepPlan fifth = job.start("-n1 --exact");
  EXPECT_EQ(fifth.verdict, StepVerdict::waits);
  EXPECT_EQ(fifth.waits_for, "1 CPU on gpu1 (4 of 4 held by steps 0, 1, 2, 3)");
  EXPECT_EQ(corpus::masks(job.start("-n1 --overlap")), "303");
  EXPECT_EQ(job.plan("-n1 --exact -I").error.messages.front().text,
            "Unable to create step for job 7: Requested nodes are busy");
}

TEST(StepCores, WholeAndExactExcludeEachOther) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n4", {{"gpu1", Bits::of({0, 1, 8, 9}), {}, 65536, {}}});
  job.start("-n1");
  EXPECT_EQ(job.plan("-n1 --exact").verdict, StepVerdict::waits);
  job.state().finish(0);
  job.start("-n1 --exact");
  const StepPlan whole = job.plan("-n1");
  EXPECT_EQ(whole.verdict, StepVerdict::waits);
  EXPECT_EQ(whole.waits_for, "all 4 CPUs on gpu1 (1 of 4 held by step 1)");
}

TEST(StepMemory, InheritedMemorySerialises) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n4 --mem=4G", {{"gpu1", Bits::of({0, 1, 8, 9}), {}, 4096, {}}});
  job.start("-n1 --exact");
  const StepPlan second = job.plan("-n1 --exact");
  EXPECT_EQ(second.verdict, StepVerdict::waits);
  EXPECT_EQ(second.waits_for, "4096 MB of memory on gpu1 (4096 of 4096 MB held by step 0)");
  EXPECT_EQ(job.plan("-n1 --exact --mem=0").verdict, StepVerdict::starts);
  job.state().finish(0);
  EXPECT_EQ(corpus::masks(job.start("-n1 --exact --mem=2G")), "1");
  EXPECT_EQ(corpus::masks(job.start("-n1 --exact --mem=2G")), "2");
  EXPECT_EQ(job.start("-n1 --exact --mem=2G").verdict, StepVerdict::waits);
}

TEST(StepMemory, PerCpuIsCountedForTheStepsCpus) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-n4 -c4 --gres=gpu:4 --gpus-per-task=1 --mem-per-cpu=1443",
          {{"gpu1", Bits::first_n(16), Bits::first_n(4), 16 * 1443, {}}});
  const char* expected[] = {"0 f", "1 f0", "2 f00", "3 f000"};
  for (const char* row : expected) {
    const StepPlan plan = job.start("--exclusive --gres=gpu:1 --ntasks=1");
    EXPECT_EQ(corpus::gpus(plan) + " " + corpus::masks(plan), row);
    ASSERT_FALSE(plan.nodes.empty());
    EXPECT_EQ(plan.nodes[0].share.memory_mb, 4U * 1443U);
  }
  EXPECT_EQ(job.start("--exclusive --gres=gpu:1 --ntasks=1").verdict, StepVerdict::waits);
  job.state().finish(0);
  const StepPlan fifth = job.start("--exclusive --gres=gpu:1 --ntasks=1");
  EXPECT_EQ(fifth.id, 4U);
  EXPECT_EQ(corpus::gpus(fifth), "0");
}

TEST(StepShards, NameTheirGpu) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-n4 --tres-per-task=gres/shard:1",
          {{"gpu6", Bits::first_n(4), {}, 65536, {4, 0, 0, 0, 0, 0, 0, 0}}},
          request::Command::srun);
  const StepPlan plan = place_own_step(cluster, job.facts(), job.facts().request);
  ASSERT_EQ(plan.verdict, StepVerdict::starts) << corpus::lines(plan);
  EXPECT_EQ(corpus::gpus(plan), "0|0|0|0");
  const Environment env = task_environment(cluster, job.facts(), plan, plan.tasks[3], {});
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_EQ(env.at("SLURM_GPUS_ON_NODE"), "1");
  EXPECT_EQ(env.at("SLURM_SHARDS_ON_NODE"), "4");
  EXPECT_EQ(env.at("SLURM_TRES_BIND"), "gres/shard:per_task:1");
}

TEST(StepLauncher, TakesNothingAndSeesWhatTheJobAskedByNode) {
  const cluster::Cluster cluster = corpus::make();
  const auto nodes = nodes_with_gpus(2, Bits::of({0, 8}), Bits::first_n(4));
  Job by_node(cluster, "-N2 --ntasks-per-node=2 --gres=gpu:4", nodes);
  by_node.start("");
  const StepPlan plan = by_node.start("--external-launcher");
  EXPECT_EQ(plan.verdict, StepVerdict::starts);
  EXPECT_EQ(corpus::masks(plan), "101,101");
  EXPECT_EQ(corpus::gpus(plan), "0,1,2,3|0,1,2,3");
  by_node.state().finish(0);
  EXPECT_EQ(by_node.plan("").verdict, StepVerdict::starts);

  const Environment rank = mpirun_rank_environment(cluster, by_node.facts(), 1);
  EXPECT_EQ(rank.at("SLURM_STEP_GPUS"), "0,1,2,3");
  EXPECT_EQ(rank.at("SLURM_PROCID"), "1");
  EXPECT_EQ(rank.at("SLURM_NTASKS"), "2");
  EXPECT_EQ(rank.at("SLURM_TASKS_PER_NODE"), "1(x2)");
  EXPECT_EQ(rank.at("SLURM_CPUS_ON_NODE"), "2");

  Job by_task(cluster, "-N2 --ntasks-per-node=2 --gpus-per-task=1",
              nodes_with_gpus(2, Bits::of({0, 1}), Bits::of({0, 1})));
  const Environment blind = mpirun_rank_environment(cluster, by_task.facts(), 0);
  EXPECT_FALSE(blind.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_FALSE(blind.contains("SLURM_GPUS_ON_NODE"));
  EXPECT_EQ(blind.at("SLURM_JOB_GPUS"), "0,1");
  EXPECT_EQ(blind.at("BERTH_TASK_CPUS"), "0x3");
  // berth bind finds them all the same.
  const auto local = read_local_share(blind.at(kLocalShareVariable));
  ASSERT_TRUE(local);
  EXPECT_EQ(local->share.gpus().list(), "0,1");
  EXPECT_TRUE(local->daemon);
}

TEST(StepGpus, ALauncherIsShownWhatItWantsWhateverTheJobHandsOn) {
  const cluster::Cluster cluster = corpus::make();
  struct Row {
    const char* job;
    const char* step;
    const char* gpus;
  };
  for (const Row& row : {
           // sbatch hands SLURM_TRES_BIND=gres/gpu:per_task:1 on
           Row{"-N1 -n4 --gpus-per-task=1", "", "0|1|2|3"},
           Row{"-N1 -n4 --gpus-per-task=1", "--launcher=none", "0|1|2|3"},
           Row{"-N1 -n4 --gpus-per-task=1", "--launcher=torch", "0,1,2,3|0,1,2,3|0,1,2,3|0,1,2,3"},
           Row{"-N1 -n4 --gpus-per-task=1", "--launcher=jax", "0,1,2,3|0,1,2,3|0,1,2,3|0,1,2,3"},
           Row{"-N1 -n4 --gpus-per-task=1", "--launcher=mpi", "0|1|2|3"},
           Row{"-N1 -n2 --gres=gpu:4 --gpu-bind=none", "--launcher=mpi", "0,1|2,3"},
           Row{"-N1 -n2 --gres=gpu:4 --gpu-bind=single:1", "--launcher=torch", "0,1,2,3|0,1,2,3"},
       }) {
    Job job(cluster, row.job, nodes_with_gpus(1, Bits::first_n(4), Bits::first_n(4)));
    EXPECT_EQ(corpus::gpus(job.plan(row.step)), row.gpus) << row.job << " " << row.step;
  }
  Job job(cluster, "-N1 -n4 --gpus-per-task=1",
          nodes_with_gpus(1, Bits::first_n(4), Bits::first_n(4)));
  const StepPlan plan = job.plan("--launcher=torch");
  const Environment env = task_environment(cluster, job.facts(), plan, plan.tasks[3],
                                           batch_environment(cluster, job.facts()));
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "0,1,2,3");
  EXPECT_EQ(env.at("SLURM_TRES_BIND"), "gres/gpu:none");
}

}  // namespace
}  // namespace berth::place
