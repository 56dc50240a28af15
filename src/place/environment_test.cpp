// The environments, compared with recorded ones (times, pids, users, ports and paths left out).
#include "place/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

using corpus::Job;

/// The variables a recording would show: those of Slurm, MPI and GPUs.
std::vector<std::string> shown(const Environment& env) {
  std::vector<std::string> out;
  for (const auto& [name, value] : env) {
    const bool ours = name.starts_with("BERTH_") || name == "HOSTNAME" || name == "ENVIRONMENT" ||
                      name == "ZE_AFFINITY_MASK";
    if (!ours) out.push_back(name + "=" + value);
  }
  return out;
}

Job sample(const cluster::Cluster& cluster) {
  return Job(cluster, "-N2 --ntasks-per-node=2 -c2 --gpus-per-task=1 --mem=4G -J sample",
             {{"gpu1", Bits::first_n(4), Bits::of({0, 1}), 4096, {}},
              {"gpu2", Bits::first_n(4), Bits::of({0, 1}), 4096, {}}});
}

TEST(BatchEnvironment, AsRecorded) {
  const cluster::Cluster cluster = corpus::make();
  Job job = sample(cluster);
  EXPECT_THAT(
      shown(batch_environment(cluster, job.facts())),
      testing::ElementsAre(
          "CUDA_VISIBLE_DEVICES=0,1", "GPU_DEVICE_ORDINAL=0,1", "HYDRA_BOOTSTRAP=slurm",
          "HYDRA_LAUNCHER_EXTRA_ARGS=--external-launcher", "I_MPI_HYDRA_BOOTSTRAP=slurm",
          "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=--external-launcher",
          "OMPI_MCA_plm_slurm_args=--external-launcher",
          "PRTE_MCA_plm_slurm_args=--external-launcher", "ROCR_VISIBLE_DEVICES=0,1",
          "SLURMD_NODENAME=gpu1", "SLURM_CLUSTER_NAME=oracle", "SLURM_CPUS_ON_NODE=4",
          "SLURM_CPUS_PER_TASK=2", "SLURM_GPUS_ON_NODE=2", "SLURM_GTIDS=0", "SLURM_JOBID=7",
          "SLURM_JOB_CPUS_PER_NODE=4(x2)", "SLURM_JOB_EXCLUSIVE=NO", "SLURM_JOB_GPUS=0,1",
          "SLURM_JOB_ID=7", "SLURM_JOB_NAME=sample", "SLURM_JOB_NODELIST=gpu[1-2]",
          "SLURM_JOB_NUM_NODES=2", "SLURM_JOB_OVERSUBSCRIBE=NO", "SLURM_JOB_PARTITION=debug",
          "SLURM_LOCALID=0", "SLURM_MEM_PER_NODE=4096", "SLURM_NNODES=2", "SLURM_NODEID=0",
          "SLURM_NODELIST=gpu[1-2]", "SLURM_NPROCS=4", "SLURM_NTASKS=4", "SLURM_NTASKS_PER_NODE=2",
          "SLURM_OOM_KILL_STEP=0", "SLURM_PROCID=0", "SLURM_RESTART_COUNT=0", "SLURM_STEPID=-5",
          "SLURM_STEP_ID=-5", "SLURM_TASKS_PER_NODE=2(x2)", "SLURM_TOPOLOGY_ADDR=gpu1",
          "SLURM_TOPOLOGY_ADDR_PATTERN=node", "SLURM_TRES_BIND=gres/gpu:per_task:1",
          "SLURM_TRES_PER_TASK=cpu=2,gres/gpu=1"));
}

TEST(BatchEnvironment, OfACpuJobAsRecorded) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-n3 -c2 --mem-per-cpu=100 -w cpu1 -J envcpu",
          {{"cpu1", Bits::of({0, 1, 8}), {}, 600, {}}});
  const Environment env = batch_environment(cluster, job.facts());
  const char* absent[] = {"SLURM_GPUS_ON_NODE",   "SLURM_JOB_GPUS",  "CUDA_VISIBLE_DEVICES",
                          "SLURM_MEM_PER_NODE",   "SLURM_TRES_BIND", "SLURM_DISTRIBUTION",
                          "SLURM_NTASKS_PER_NODE"};
  for (const char* name : absent) EXPECT_FALSE(env.contains(name)) << name;
  EXPECT_EQ(env.at("SLURM_CPUS_ON_NODE"), "6");
  EXPECT_EQ(env.at("SLURM_JOB_CPUS_PER_NODE"), "6");
  EXPECT_EQ(env.at("SLURM_MEM_PER_CPU"), "100");
  EXPECT_EQ(env.at("SLURM_NTASKS"), "3");
  EXPECT_EQ(env.at("SLURM_TASKS_PER_NODE"), "3");
  EXPECT_EQ(env.at("SLURM_TRES_PER_TASK"), "cpu=2");
  EXPECT_EQ(env.at("BERTH_TASK_CPUS"), "0x3000f");
}

TEST(BatchEnvironment, NoTaskCountWithoutATaskOption) {
  const cluster::Cluster cluster = corpus::make();
  Job exclusive(
      cluster, "-N2 --exclusive",
      {{"gpu1", Bits::first_n(16), {}, 65536, {}}, {"gpu2", Bits::first_n(16), {}, 65536, {}}});
  Environment env = batch_environment(cluster, exclusive.facts());
  EXPECT_EQ(env.at("SLURM_TASKS_PER_NODE"), "16(x2)");
  EXPECT_EQ(env.at("SLURM_JOB_EXCLUSIVE"), "NODE");
  EXPECT_FALSE(env.contains("SLURM_NTASKS"));
  Job gres(cluster, "-N2 --gres=gpu:4",
           {{"gpu1", Bits::of({0}), Bits::first_n(4), 65536, {}},
            {"gpu2", Bits::of({0}), Bits::first_n(4), 65536, {}}});
  env = batch_environment(cluster, gres.facts());
  EXPECT_EQ(env.at("SLURM_TASKS_PER_NODE"), "1(x2)");
  EXPECT_FALSE(env.contains("SLURM_NTASKS"));
}

TEST(BatchEnvironment, OptionsAreHandedOn) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster,
          "-n4 --gpus=a100:2 --cpus-per-gpu=2 -m plane=2 --hint=nomultithread --mem-per-gpu=1G",
          {{"gpu1", Bits::first_n(4), Bits::of({0, 1}), 2048, {}}});
  const Environment env = batch_environment(cluster, job.facts());
  EXPECT_EQ(env.at("SLURM_GPUS"), "a100:2");
  EXPECT_EQ(env.at("SLURM_CPUS_PER_GPU"), "2");
  EXPECT_EQ(env.at("SLURM_DISTRIBUTION"), "plane");
  EXPECT_EQ(env.at("SLURM_DIST_PLANESIZE"), "2");
  EXPECT_EQ(env.at("SLURM_HINT"), "nomultithread");
  EXPECT_EQ(env.at("SLURM_THREADS_PER_CORE"), "1");
  EXPECT_EQ(env.at("SLURM_MEM_PER_GPU"), "1024");
}

TEST(BatchEnvironment, HydraIsToldOfSlurm) {
  cluster::Cluster cluster = corpus::make();
  Job job = sample(cluster);
  /// "slurm args", of MPICH and of Intel; "-" where nothing is set.
  const auto told = [&](Environment env) {
    add_job_variables(env, batch_environment(cluster, job.facts()));
    std::string out;
    for (const char* name : {"HYDRA_BOOTSTRAP", "HYDRA_LAUNCHER_EXTRA_ARGS",
                             "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"}) {
      const auto at = env.find(name);
      out += (out.empty() ? "" : " ") + (at == env.end() ? "-" : at->second);
    }
    EXPECT_EQ(env.at("SLURM_JOB_ID"), "7");
    return out;
  };
  EXPECT_EQ(told({}), "slurm --external-launcher slurm --external-launcher");
  EXPECT_EQ(told({{"SLURM_JOB_ID", "3"}}), "slurm --external-launcher slurm --external-launcher");
  EXPECT_EQ(told({{"HYDRA_BOOTSTRAP", "ssh"}}), "ssh - slurm --external-launcher");
  EXPECT_EQ(told({{"HYDRA_LAUNCHER", "fork"}}), "- - slurm --external-launcher");
  EXPECT_EQ(told({{"HYDRA_BOOTSTRAP", "slurm"}}),
            "slurm --external-launcher slurm --external-launcher");
  EXPECT_EQ(told({{"HYDRA_LAUNCHER_EXTRA_ARGS", "--exact"}}),
            "slurm --exact slurm --external-launcher");
  EXPECT_EQ(
      told({{"I_MPI_HYDRA_BOOTSTRAP", "ssh"}, {"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "-q"}}),
      "slurm --external-launcher ssh -q");
  cluster.settings.hydra_bootstrap = false;  // MpiParams=disable_slurm_hydra_bootstrap
  EXPECT_EQ(told({}), "- - - -");
  EXPECT_EQ(told({{"HYDRA_BOOTSTRAP", "slurm"}}), "slurm - - -");
}

TEST(TaskEnvironment, AUsersOwnHydraStays) {
  const cluster::Cluster cluster = corpus::make();
  Job job = sample(cluster);
  const StepPlan plan = job.plan("-n1");
  Environment script = {{"HYDRA_BOOTSTRAP", "ssh"}};
  add_job_variables(script, batch_environment(cluster, job.facts()));
  const Environment env = task_environment(cluster, job.facts(), plan, plan.tasks[0], script);
  EXPECT_EQ(env.at("HYDRA_BOOTSTRAP"), "ssh");
  EXPECT_FALSE(env.contains("I_MPI_HYDRA_BOOTSTRAP"));
}

TEST(SallocEnvironment, AsRecorded) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n2 -c2 --mem=1G --gres=gpu:2 -J sal -w gpu1",
          {{"gpu1", Bits::first_n(4), Bits::of({0, 1}), 1024, {}}}, request::Command::salloc);
  EXPECT_THAT(shown(salloc_environment(cluster, job.facts())),
              testing::ElementsAre(
                  "OMPI_MCA_plm_slurm_args=--external-launcher",
                  "PRTE_MCA_plm_slurm_args=--external-launcher", "SLURM_CLUSTER_NAME=oracle",
                  "SLURM_CPUS_PER_TASK=2", "SLURM_JOBID=7", "SLURM_JOB_CPUS_PER_NODE=4",
                  "SLURM_JOB_ID=7", "SLURM_JOB_NAME=sal", "SLURM_JOB_NODELIST=gpu1",
                  "SLURM_JOB_NUM_NODES=1", "SLURM_JOB_PARTITION=debug", "SLURM_MEM_PER_NODE=1024",
                  "SLURM_NNODES=1", "SLURM_NODELIST=gpu1", "SLURM_NPROCS=2", "SLURM_NTASKS=2",
                  "SLURM_TASKS_PER_NODE=2", "SLURM_TRES_PER_TASK=cpu=2"));
  Job uneven(cluster, "-N2 -n4 -c2 --mem=2G",
             {{"gpu1", Bits::first_n(6), {}, 2048, {}}, {"gpu2", Bits::first_n(2), {}, 2048, {}}},
             request::Command::salloc);
  const Environment env = salloc_environment(cluster, uneven.facts());
  EXPECT_EQ(env.at("SLURM_JOB_CPUS_PER_NODE"), "6,2");
  EXPECT_EQ(env.at("SLURM_TASKS_PER_NODE"), "3,1");
}

TEST(TaskEnvironment, InAStepAsRecorded) {
  const cluster::Cluster cluster = corpus::make();
  Job job = sample(cluster);
  const StepPlan plan = job.plan("-n1");
  ASSERT_EQ(plan.verdict, StepVerdict::starts) << corpus::lines(plan);
  const Environment env = task_environment(cluster, job.facts(), plan, plan.tasks[0],
                                           batch_environment(cluster, job.facts()));
  EXPECT_THAT(
      shown(env),
      testing::ElementsAre(
          "CUDA_VISIBLE_DEVICES=0", "GPU_DEVICE_ORDINAL=0",
          "OMPI_MCA_plm_slurm_args=--external-launcher",
          "PRTE_MCA_plm_slurm_args=--external-launcher", "ROCR_VISIBLE_DEVICES=0",
          "SLURMD_NODENAME=gpu1", "SLURMD_TRES_BIND=gres/gpu:per_task:1",
          "SLURM_CLUSTER_NAME=oracle", "SLURM_CPUS_ON_NODE=2", "SLURM_CPUS_PER_TASK=2",
          "SLURM_CPU_BIND=quiet,mask_cpu:0x0003", "SLURM_CPU_BIND_LIST=0x0003",
          "SLURM_CPU_BIND_TYPE=mask_cpu:", "SLURM_CPU_BIND_VERBOSE=quiet",
          "SLURM_DISTRIBUTION=cyclic", "SLURM_GPUS_ON_NODE=1", "SLURM_GTIDS=0", "SLURM_JOBID=7",
          "SLURM_JOB_CPUS_PER_NODE=4(x2)", "SLURM_JOB_EXCLUSIVE=NO", "SLURM_JOB_GPUS=0,1",
          "SLURM_JOB_ID=7", "SLURM_JOB_NAME=sample", "SLURM_JOB_NODELIST=gpu[1-2]",
          "SLURM_JOB_NUM_NODES=2", "SLURM_JOB_OVERSUBSCRIBE=NO", "SLURM_JOB_PARTITION=debug",
          "SLURM_LOCALID=0", "SLURM_MEM_PER_NODE=4096", "SLURM_NNODES=1", "SLURM_NODEID=0",
          "SLURM_NODELIST=gpu[1-2]", "SLURM_NPROCS=1", "SLURM_NTASKS=1", "SLURM_NTASKS_PER_NODE=2",
          "SLURM_OOM_KILL_STEP=0", "SLURM_PROCID=0", "SLURM_RESTART_COUNT=0", "SLURM_STEPID=0",
          "SLURM_STEP_GPUS=0", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=gpu1",
          "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_TASKS_PER_NODE=1",
          "SLURM_TASKS_PER_NODE=1", "SLURM_TOPOLOGY_ADDR=gpu1", "SLURM_TOPOLOGY_ADDR_PATTERN=node",
          "SLURM_TRES_BIND=gres/gpu:per_task:1", "SLURM_TRES_PER_TASK=cpu=2,gres/gpu=1"));
  EXPECT_EQ(env.at("BERTH_TASK_CPUS"), "0x3");
}

TEST(TaskEnvironment, ShowsTheStepsOwnCpus) {
  const cluster::Cluster cluster = corpus::make();
  Job job = sample(cluster);
  const StepPlan plan = job.plan("-n1 -c4 -m plane=2");
  const Environment env = task_environment(cluster, job.facts(), plan, plan.tasks[0],
                                           batch_environment(cluster, job.facts()));
  EXPECT_EQ(env.at("SLURM_CPUS_PER_TASK"), "4");
  EXPECT_EQ(env.at("SLURM_TRES_PER_TASK"), "cpu=4,gres/gpu=1");
  EXPECT_EQ(env.at("SLURM_DISTRIBUTION"), "plane");
  EXPECT_EQ(env.at("SLURM_DIST_PLANESIZE"), "2");
}

TEST(TaskEnvironment, TasksPerNodeAreTheJobsUnlessTheStepSaysItself) {
  const cluster::Cluster cluster = corpus::make();
  Job job = sample(cluster);
  struct Row {
    const char* step;
    const char* told;
  };
  for (const Row& row : {
           Row{"-n1", "2"},  // as recorded
           Row{"-N2 --ntasks-per-node=1", "1"},
           Row{"--ntasks-per-node=1", "2"},      // not honoured: the job's 4 tasks do not fit
           Row{"-n2 --ntasks-per-node=2", "1"},  // a ceiling: one on each node
           Row{"-N1 --ntasks-per-node=2", "2"},
           Row{"-n3 --ntasks-per-node=2", "2"},  // not as many on each
       }) {
    const StepPlan plan = job.plan(row.step);
    ASSERT_EQ(plan.verdict, StepVerdict::starts) << row.step << corpus::lines(plan);
    const Environment env = task_environment(cluster, job.facts(), plan, plan.tasks[0],
                                             batch_environment(cluster, job.facts()));
    EXPECT_EQ(env.at("SLURM_NTASKS_PER_NODE"), row.told) << row.step;
  }
}

TEST(TaskEnvironment, OfAnOwnJobAsRecorded) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-n2 -c2 --gpus-per-task=1 --mem=2G",
          {{"gpu1", Bits::first_n(4), Bits::of({0, 1}), 2048, {}}}, request::Command::srun);
  job.facts().name = "sh";
  const StepPlan plan = place_own_step(cluster, job.facts(), job.facts().request);
  ASSERT_EQ(plan.verdict, StepVerdict::starts) << corpus::lines(plan);
  EXPECT_THAT(
      shown(task_environment(cluster, job.facts(), plan, plan.tasks[1], {})),
      testing::ElementsAre(
          "CUDA_VISIBLE_DEVICES=1", "GPU_DEVICE_ORDINAL=1", "ROCR_VISIBLE_DEVICES=1",
          "SLURMD_NODENAME=gpu1", "SLURMD_TRES_BIND=gres/gpu:per_task:1",
          "SLURM_CLUSTER_NAME=oracle", "SLURM_CPUS_ON_NODE=4", "SLURM_CPUS_PER_TASK=2",
          "SLURM_CPU_BIND=quiet,mask_cpu:0x0003,0x000C", "SLURM_CPU_BIND_LIST=0x0003,0x000C",
          "SLURM_CPU_BIND_TYPE=mask_cpu:", "SLURM_CPU_BIND_VERBOSE=quiet",
          "SLURM_DISTRIBUTION=block", "SLURM_GPUS_ON_NODE=2", "SLURM_GTIDS=0,1", "SLURM_JOBID=7",
          "SLURM_JOB_CPUS_PER_NODE=4", "SLURM_JOB_ID=7", "SLURM_JOB_NAME=sh",
          "SLURM_JOB_NODELIST=gpu1", "SLURM_JOB_NUM_NODES=1", "SLURM_JOB_PARTITION=debug",
          "SLURM_LOCALID=1", "SLURM_MEM_PER_NODE=2048", "SLURM_NNODES=1", "SLURM_NODEID=0",
          "SLURM_NODELIST=gpu1", "SLURM_NPROCS=2", "SLURM_NTASKS=2", "SLURM_OOM_KILL_STEP=0",
          "SLURM_PROCID=1", "SLURM_STEPID=0", "SLURM_STEP_GPUS=1", "SLURM_STEP_ID=0",
          "SLURM_STEP_NODELIST=gpu1", "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NUM_TASKS=2",
          "SLURM_STEP_TASKS_PER_NODE=2", "SLURM_TASKS_PER_NODE=2", "SLURM_TOPOLOGY_ADDR=gpu1",
          "SLURM_TOPOLOGY_ADDR_PATTERN=node", "SLURM_TRES_BIND=gres/gpu:per_task:1",
          "SLURM_TRES_PER_TASK=cpu=2,gres/gpu=1"));
}

TEST(TaskEnvironment, KeepsTheJobsMemoryAndDropsItsGpus) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n4 --mem=4G --gres=gpu:4",
          {{"gpu1", Bits::of({0, 1, 8, 9}), Bits::first_n(4), 4096, {}}});
  const StepPlan plan = job.plan("-n1 --exact --mem=1G --gres=none");
  const Environment env = task_environment(cluster, job.facts(), plan, plan.tasks[0],
                                           batch_environment(cluster, job.facts()));
  EXPECT_EQ(env.at("SLURM_MEM_PER_NODE"), "4096");
  EXPECT_EQ(env.at("SLURM_JOB_GPUS"), "0,1,2,3");
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE",
                           "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"}) {
    EXPECT_FALSE(env.contains(name)) << name;
  }
}

TEST(TaskEnvironment, OnlyVariablesThatAreWantedAreSet) {
  cluster::Cluster cluster = corpus::make();
  std::vector<cluster::Device>& gpus =
      cluster.nodes[*cluster.find_node("gpu1")].gres.front().devices;
  const auto told = [&] {
    Job job(cluster, "-N1 -n1 --mem=4G --gres=gpu:2",
            {{"gpu1", Bits::of({0, 1}), Bits::of({1, 2}), 4096, {}}});
    const StepPlan plan = job.plan("-n1");
    const Environment inherited = {{"CUDA_VISIBLE_DEVICES", "7"}, {"ROCR_VISIBLE_DEVICES", "8"}};
    const Environment env = task_environment(cluster, job.facts(), plan, plan.tasks[0], inherited);
    std::string out;
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                             "ZE_AFFINITY_MASK"}) {
      const auto at = env.find(name);
      out += (out.empty() ? "" : " ") + (at == env.end() ? "-" : at->second);
    }
    return out;
  };
  EXPECT_EQ(told(), "1,2 1,2 1,2 1,2");
  for (cluster::Device& gpu : gpus) gpu.variables.only("nvidia");
  EXPECT_EQ(told(), "1,2 8 - -") << "what nobody is asked to set is the user's";
  for (cluster::Device& gpu : gpus) gpu.variables.only("amd");
  EXPECT_EQ(told(), "7 1,2 - -");
  for (cluster::Device& gpu : gpus) gpu.variables.only("");
  EXPECT_EQ(told(), "7 8 - -");
  // Two vendors: each variable has its own.
  gpus[1].variables.only("nvidia");
  gpus[2].variables.only("amd");
  EXPECT_EQ(told(), "1 2 - -");
  // Names, where a variable takes them and all are known.
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].variables = {};
    gpus[i].uuid = "GPU-" + std::to_string(i);
  }
  EXPECT_EQ(told(), "GPU-1,GPU-2 GPU-1,GPU-2 1,2 1,2");
  gpus[2].uuid.clear();
  EXPECT_EQ(told(), "1,2 1,2 1,2 1,2");
}

TEST(TaskEnvironment, MpsPercentage) {
  cluster::Cluster cluster = corpus::make();
  cluster::Node& node = cluster.nodes[*cluster.find_node("gpu1")];
  cluster::Gres mps;
  mps.name = "mps";
  mps.shares_gpu = true;
  mps.devices = node.gres.front().devices;
  for (auto& device : mps.devices) device.units = 1300;
  node.gres.push_back(mps);
  Job job(cluster, "-n1 --gres=mps:200", {{"gpu1", Bits::of({0}), {}, 1024, {}}});
  job.facts().allocation.nodes[0].gres.push_back({"mps", {0, 200, 0, 0}});
  const Environment env = batch_environment(cluster, job.facts());
  EXPECT_EQ(env.at("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "15");
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "1");
}

TEST(HetEnvironment, NamesEveryComponent) {
  const cluster::Cluster cluster = corpus::make();
  Job first(cluster, "-n1 --mem=1G --gres=gpu:1 -w gpu1",
            {{"gpu1", Bits::of({0}), Bits::of({0}), 1024, {}}});
  Job second(cluster, "-n2 --mem=1G -w cpu1", {{"cpu1", Bits::of({0}), {}, 1024, {}}});
  second.facts().id = 8;
  const Environment env = het_batch_environment(cluster, {first.facts(), second.facts()});
  EXPECT_EQ(env.at("SLURM_HET_SIZE"), "2");
  EXPECT_EQ(env.at("SLURM_JOB_ID"), "7");
  EXPECT_EQ(env.at("SLURM_JOB_NODELIST_HET_GROUP_0"), "gpu1");
  EXPECT_EQ(env.at("SLURM_JOB_NODELIST_HET_GROUP_1"), "cpu1");
  EXPECT_EQ(env.at("SLURM_JOB_ID_HET_GROUP_1"), "8");
  EXPECT_EQ(env.at("SLURM_NTASKS_PACK_GROUP_1"), "2");
  EXPECT_EQ(env.at("SLURM_NTASKS"), "1");
}

TEST(HetEnvironment, StepsFindTheirComponentsOwnOptions) {
  const cluster::Cluster cluster = corpus::make();
  Job first(cluster, "-n1 -c4 -m block -w cpu1", {{"cpu1", Bits::of({0, 1}), {}, 1024, {}}});
  Job second(cluster, "-n2 -c2 --gpus-per-task=1 -w gpu1",
             {{"gpu1", Bits::of({0, 1, 2, 3}), Bits::of({0, 1}), 1024, {}}});
  const Environment env = het_batch_environment(cluster, {first.facts(), second.facts()});
  EXPECT_EQ(env.at("SLURM_CPUS_PER_TASK"), "4");
  EXPECT_EQ(env.at("SLURM_CPUS_PER_TASK_HET_GROUP_0"), "4");
  EXPECT_EQ(env.at("SLURM_CPUS_PER_TASK_HET_GROUP_1"), "2");
  EXPECT_EQ(env.at("SLURM_TRES_PER_TASK_HET_GROUP_1"), "cpu=2,gres/gpu=1");
  EXPECT_EQ(env.at("SLURM_DISTRIBUTION_HET_GROUP_0"), "block");
  EXPECT_FALSE(env.contains("SLURM_DISTRIBUTION_HET_GROUP_1"));
}

TEST(RepetitionList, JoinsNeighbours) {
  EXPECT_EQ(repetition_list({}), "");
  EXPECT_EQ(repetition_list({4}), "4");
  EXPECT_EQ(repetition_list({2, 2, 2, 1}), "2(x3),1");
  EXPECT_EQ(repetition_list({1, 2, 1, 1}), "1,2,1(x2)");
}

}  // namespace
}  // namespace berth::place
