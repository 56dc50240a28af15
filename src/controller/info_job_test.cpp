// The words of jobs and nodes against recordings of `scontrol show job` and `show node`.
#include "controller/info_job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "controller/info_node.h"
#include "job/state_test_fixture.h"

namespace berth::controller {
namespace {

const TrackedTres kNothingTracked;

/// The fields of scontrol that depend on what was asked for and given.
std::string shown(const wire::JobInfo& job) {
  std::string out = fmt::format(
      "NumNodes={} NumCPUs={} NumTasks={} CPUs/Task={} ReqTRES={} AllocTRES={}", job.node_count(),
      job.cpus(), job.tasks() == 0 ? "N/A" : std::to_string(job.tasks()), job.cpus_per_task(),
      job.req_tres(), job.alloc_tres());
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out += fmt::format(" {}={}", key, value);
  };
  add("CpusPerTres", job.cpus_per_tres());
  add("MemPerTres", job.mem_per_tres());
  add("TresBind", job.tres_bind());
  add("TresPerJob", job.tres_per_job());
  add("TresPerNode", job.tres_per_node());
  add("TresPerSocket", job.tres_per_socket());
  add("TresPerTask", job.tres_per_task());
  add("NtasksPerTRES", job.ntasks_per_tres());
  add("Features", job.features());
  if (job.has_min_memory_cpu_mb()) out += fmt::format(" MinMemoryCPU={}", job.min_memory_cpu_mb());
  if (job.min_memory_node_mb() != 0) {
    out += fmt::format(" MinMemoryNode={}", job.min_memory_node_mb());
  }
  return out;
}

struct Recorded {
  const char* words;
  const char* shown;
};

class RecordedJobs : public testing::TestWithParam<Recorded> {};

TEST_P(RecordedJobs, AreShownAsRecorded) {
  job::testing::Controller c;
  Users users;
  const job::JobId id = c.started(GetParam().words, "srun");
  const InfoSite site{c.state.cluster(), kNothingTracked, users};
  EXPECT_EQ(shown(job_info(site, c.at(id), c.now)), GetParam().shown);
}

INSTANTIATE_TEST_SUITE_P(
    Corpus, RecordedJobs,
    testing::Values(
        Recorded{"-n4",
                 "NumNodes=1 NumCPUs=4 NumTasks=4 CPUs/Task=1 "
                 "ReqTRES=cpu=4,mem=64G,node=1,billing=4 AllocTRES=cpu=4,mem=64G,node=1,billing=4"},
        Recorded{"-N3",
                 "NumNodes=3 NumCPUs=5 NumTasks=3 CPUs/Task=1 "
                 "ReqTRES=cpu=3,mem=192G,node=3,billing=3 "
                 "AllocTRES=cpu=5,mem=192G,node=3,billing=5"},
        Recorded{"-N2-4",
                 "NumNodes=4 NumCPUs=6 NumTasks=4 CPUs/Task=1 "
                 "ReqTRES=cpu=1,mem=128G,node=2,billing=1 "
                 "AllocTRES=cpu=6,mem=256G,node=4,billing=6"},
        Recorded{"-n5 --ntasks-per-node=2",
                 "NumNodes=3 NumCPUs=6 NumTasks=5 CPUs/Task=1 "
                 "ReqTRES=cpu=5,mem=192G,node=3,billing=5 "
                 "AllocTRES=cpu=6,mem=192G,node=3,billing=6"},
        Recorded{"-n40 -p gpu_partition",
                 "NumNodes=3 NumCPUs=40 NumTasks=40 CPUs/Task=1 "
                 "ReqTRES=cpu=40,mem=64G,node=1,billing=40 "
                 "AllocTRES=cpu=40,mem=192G,node=3,billing=40"},
        Recorded{"-N1 -n2 --exclusive -w gpu1",
                 "NumNodes=1 NumCPUs=16 NumTasks=2 CPUs/Task=1 "
                 "ReqTRES=cpu=2,mem=64G,node=1,billing=2 "
                 "AllocTRES=cpu=16,mem=64G,node=1,billing=16"},
        Recorded{"-w gpu[3-4]",
                 "NumNodes=2 NumCPUs=2 NumTasks=2 CPUs/Task=1 "
                 "ReqTRES=cpu=2,mem=128G,node=2,billing=2 "
                 "AllocTRES=cpu=2,mem=128G,node=2,billing=2"},
        Recorded{"-n2 -c2 --mem-per-cpu=2G",
                 "NumNodes=1 NumCPUs=4 NumTasks=2 CPUs/Task=2 "
                 "ReqTRES=cpu=4,mem=8G,node=1,billing=4 AllocTRES=cpu=4,mem=8G,node=1,billing=4 "
                 "TresPerTask=cpu=2 MinMemoryCPU=2048"},
        Recorded{"--gpus=2 --cpus-per-gpu=3",
                 "NumNodes=1 NumCPUs=6 NumTasks=1 CPUs/Task=1 "
                 "ReqTRES=cpu=6,mem=64G,node=1,billing=6 AllocTRES=cpu=6,mem=64G,node=1,billing=6 "
                 "CpusPerTres=gres/gpu:3 TresPerJob=gres/gpu:2"},
        Recorded{"-n2 -c8 --gpus-per-task=1",
                 "NumNodes=1 NumCPUs=16 NumTasks=2 CPUs/Task=8 "
                 "ReqTRES=cpu=16,mem=64G,node=1,billing=16 "
                 "AllocTRES=cpu=16,mem=64G,node=1,billing=16 TresBind=gres/gpu:per_task:1 "
                 "TresPerTask=cpu=8,gres/gpu=1"},
        Recorded{"--gpus=4 --gpus-per-task=1",
                 "NumNodes=1 NumCPUs=4 NumTasks=4 CPUs/Task=1 "
                 "ReqTRES=cpu=4,mem=64G,node=1,billing=4 AllocTRES=cpu=4,mem=64G,node=1,billing=4 "
                 "TresBind=gres/gpu:per_task:1 TresPerJob=gres/gpu:4 TresPerTask=gres/gpu=1"},
        Recorded{"-N2 --gpus-per-node=2 --ntasks-per-gpu=2",
                 "NumNodes=2 NumCPUs=8 NumTasks=8 CPUs/Task=1 "
                 "ReqTRES=cpu=8,mem=128G,node=2,billing=8 "
                 "AllocTRES=cpu=8,mem=128G,node=2,billing=8 TresPerNode=gres/gpu:2 "
                 "NtasksPerTRES=2"},
        Recorded{"-N1 -n4 --gres=gpu:4 --gpu-bind=map_gpu:0*2,1*2",
                 "NumNodes=1 NumCPUs=4 NumTasks=4 CPUs/Task=1 "
                 "ReqTRES=cpu=4,mem=64G,node=1,billing=4 AllocTRES=cpu=4,mem=64G,node=1,billing=4 "
                 "TresBind=gres/gpu:map_gpu:0*2,1*2 TresPerNode=gres/gpu:4"},
        Recorded{"--gres=gpu:a100:1,gpu:tesla_v100:1",
                 "NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 "
                 "ReqTRES=cpu=1,mem=64G,node=1,billing=1 AllocTRES=cpu=1,mem=64G,node=1,billing=1 "
                 "TresPerNode=gres/gpu:a100:1,gres/gpu:tesla_v100:1"},
        Recorded{"-n4 --tres-per-task=gres/shard:1",
                 "NumNodes=1 NumCPUs=4 NumTasks=4 CPUs/Task=1 "
                 "ReqTRES=cpu=4,mem=64G,node=1,billing=4 AllocTRES=cpu=4,mem=64G,node=1,billing=4 "
                 "TresBind=gres/shard:per_task:1 TresPerTask=gres/shard:1"},
        Recorded{"--prefer=tesla_v100 -N1",
                 "NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 "
                 "ReqTRES=cpu=1,mem=64G,node=1,billing=1 AllocTRES=cpu=1,mem=64G,node=1,billing=1 "
                 "Features=tesla_v100"}));

TEST(JobInfo, ShowsADetailForEachNode) {
  job::testing::Controller c;
  Users users;
  const TrackedTres tracked = {"gres/gpu", "gres/gpu:a100"};
  const InfoSite site{c.state.cluster(), tracked, users};
  const job::JobId id =
      c.started("-N2 -n4 --ntasks-per-node=2 -c2 --mem=4G --gpus-per-task=1 -t 10");
  const wire::JobInfo job = job_info(site, c.at(id), c.now);
  EXPECT_EQ(job.nodes(), "gpu[1-2]");
  EXPECT_EQ(job.batch_host(), "gpu1");
  EXPECT_EQ(job.min_cpus_node(), 4U);
  EXPECT_EQ(job.end_time(), job.start_time() + 600);
  EXPECT_EQ(job.gres_detail(), "gpu:a100:4");
  EXPECT_EQ(job.alloc_tres(), "cpu=8,mem=8G,node=2,billing=8,gres/gpu=4,gres/gpu:a100=4");
  ASSERT_EQ(job.detail_size(), 2);
  EXPECT_EQ(job.detail(0).cpu_ids(), "0-3");
  EXPECT_EQ(job.detail(0).memory_mb(), 4096U);
  EXPECT_EQ(job.detail(0).gres(), "gpu:a100:2(IDX:0-1)");
  EXPECT_EQ(job.std_out(), fmt::format("/home/alice/slurm-{}.out", id));
  EXPECT_EQ(job.std_out_asked(), "slurm-%j.out");
  EXPECT_EQ(job.command(), "/home/alice/job.sh");

  const wire::NodeInfo gpu1 = node_info(site, c.state, *c.state.cluster().find_node("gpu1"));
  EXPECT_EQ(gpu1.state(), "MIXED");
  EXPECT_EQ(gpu1.cpus_allocated(), 4U);
  EXPECT_EQ(gpu1.gres(), "gpu:a100:4(S:0-1)");
  EXPECT_EQ(gpu1.gres_used(), "gpu:a100:2(IDX:0-1)");
  EXPECT_EQ(gpu1.alloc_tres(), "cpu=4,mem=4G,gres/gpu=2,gres/gpu:a100=2");
  EXPECT_EQ(gpu1.gres_drained(), "");
  wire::GpuHealth health;
  health.set_node("gpu1");
  health.add_out()->set_index(3);
  health.mutable_out(0)->set_why("it does not answer");
  c.state.gpu_health(health);
  const wire::NodeInfo bad = node_info(site, c.state, *c.state.cluster().find_node("gpu1"));
  EXPECT_EQ(bad.gres_drained(), "gpu:a100:1(IDX:3)");
  ASSERT_EQ(bad.gpus_out_size(), 1);
  EXPECT_EQ(bad.gpus_out(0), "GPU 3: it does not answer");
  const wire::NodeInfo gpu6 = node_info(site, c.state, *c.state.cluster().find_node("gpu6"));
  EXPECT_EQ(gpu6.state(), "IDLE");
  EXPECT_EQ(gpu6.gres(), "gpu:8(S:0-1),shard:32(S:0-1)");
  EXPECT_EQ(gpu6.gres_used(), "gpu:0(IDX:N/A),shard:0(0/4,0/4,0/4,0/4,0/4,0/4,0/4,0/4)");
  EXPECT_EQ(gpu6.cfg_tres(), "cpu=16,mem=64G,billing=16,gres/gpu=8");
}

TEST(JobInfo, ShowsWhatWaitsAndWhatNeverStarted) {
  job::testing::Controller c;
  Users users;
  const InfoSite site{c.state.cluster(), kNothingTracked, users};
  const job::JobId array = c.submit("--array=1-4%2 -H --mem=1G");
  wire::JobInfo job = job_info(site, c.at(array), c.now);
  EXPECT_EQ(job.array_tasks(), "[1-4%2]");
  EXPECT_EQ(job.tasks(), 1U);
  EXPECT_EQ(job.reason(), "JobHeldUser");
  EXPECT_EQ(job.req_tres(), "cpu=1,mem=1G,node=1,billing=1");
  EXPECT_EQ(job.alloc_tres(), "");
  EXPECT_EQ(job.start_time(), 0);

  const job::JobId held = c.submit("-H --mem=1G");
  job::Cancel how;
  how.caller = job::testing::kAlice;
  ASSERT_TRUE(c.state.cancel(held, how, c.now));
  job = job_info(site, c.at(held), c.now);
  EXPECT_EQ(job.state(), "CANCELLED");
  EXPECT_EQ(job.tasks(), 0U);  // N/A
  EXPECT_EQ(job.node_count(), 1U);

  // More nodes than tasks are not taken.
  const job::JobId few = c.submit("-H -n3 -N5 --mem=1G");
  job = job_info(site, c.at(few), c.now);
  EXPECT_EQ(job.node_count(), 3U);
  EXPECT_EQ(job.max_nodes(), 3U);

  // Three GPUs are near two sockets: the search is for a core of each.
  const job::JobId near = c.submit("-H -w gpu1 --gres=gpu:3 --gres-flags=enforce-binding");
  job = job_info(site, c.at(near), c.now);
  EXPECT_EQ(job.cpus(), 2U);
  EXPECT_EQ(job.req_tres(), "cpu=1,mem=64G,node=1,billing=1");
}

TEST(JobInfo, ARefusedJobShowsTheNodesItsTasksWouldTake) {
  job::testing::Controller c;
  Users users;
  const InfoSite site{c.state.cluster(), kNothingTracked, users};
  const auto refused =
      c.state.submit(job::testing::submission("-n4 -N2 --ntasks-per-node=1", "srun"), 1,
                     job::testing::kAlice, c.now);
  ASSERT_FALSE(refused.has_value());
  const wire::JobInfo job = job_info(site, c.state.jobs().begin()->second, c.now);
  EXPECT_EQ(job.reason(), "BadConstraints");
  EXPECT_EQ(job.node_count(), 4U);
  EXPECT_EQ(job.req_tres(), "cpu=4,mem=128G,node=2,billing=4");
}

}  // namespace
}  // namespace berth::controller
