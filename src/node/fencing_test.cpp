// From specs to groups: which share a step has, when tasks differ, and what is refused.
#include "node/fencing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/step_ids.h"

namespace berth::node {
namespace {

using cgroup::DeviceId;
using cgroup::FakeKernel;
using testing::HasSubstr;

/// Four GPUs that are /dev/zero and its neighbours.
class FencingTest : public testing::Test {
 protected:
  FencingTest() {
    cluster::Node node;
    node.name = "n0";
    node.cores_per_socket = 4;
    cluster::Gres gpus;
    gpus.name = "gpu";
    for (const char* file : {"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
      cluster::Device device;
      device.file = file;
      gpus.devices.push_back(device);
    }
    node.gres.push_back(gpus);
    conf_.nodes.push_back(node);
    conf_.limits.emplace().constrain_devices = true;
    conf_.step_pids = 0;
    machine_.memory_mb = 4000;
    machine_.cores_per_socket = 4;
    machine_.os_numbers = {0, 2, 1, 3};
    spec_.set_node("n0");
    spec_.set_job_id(5);
    spec_.set_step_id(0);
    spec_.add_tasks();
    give(*spec_.mutable_job_share(), {1, 1, 1, 0});
    give(*spec_.mutable_share(), {0, 1, 1, 0});
    spec_.mutable_tasks(0)->add_gpus(1);
    spec_.mutable_tasks(0)->add_gpus(2);
  }
  static void give(wire::NodeShare& share, const std::vector<std::uint64_t>& units) {
    wire::GresShare& gres = *share.add_gres();
    gres.set_name("gpu");
    for (const std::uint64_t one : units) gres.add_units(one);
  }
  Fencing make(bool emulated = false) {
    return Fencing(kernel_, conf_, said_, groups_, machine_, emulated);
  }
  /// Which of the four may be opened in a group.
  std::string opens(const std::string& group) {
    std::string open;
    const auto& rules = kernel_.filters.at(group);
    for (const std::uint32_t minor : {5U, 7U, 8U, 9U}) {
      open += cgroup::allowed(rules, {false, 1, minor}) ? '1' : '0';
    }
    return open;
  }
  static bool programs_here() { return !cgroup::hierarchies_here().v2.empty(); }

  FakeKernel kernel_;
  FenceConf conf_;
  wire::NodeConfig said_;
  device::Machine machine_;
  wire::StepSpec spec_;
  Cgroups groups_ = Cgroups::find({.spool = testing::TempDir() + "/berth-fencing",
                                   .by_job = true,
                                   .whole_machine = false,
                                   .slice = ""},
                                  why_not_);
  std::string why_not_;
  void TearDown() override { groups_.leave(); }
};

TEST_F(FencingTest, AStepHasItsShareAndAScriptTheJobs) {
  if (!programs_here() || !groups_.usable()) GTEST_SKIP() << "no cgroup v2 here: " << why_not_;
  Fencing fencing = make();
  EXPECT_EQ(fencing.trouble(), "");
  EXPECT_TRUE(fencing.fences_devices());
  EXPECT_FALSE(fencing.fences_memory());
  auto fence = fencing.put_up(spec_, "/g/job_5/step_0");
  ASSERT_TRUE(fence && *fence);
  EXPECT_EQ(opens("/g/job_5/step_0"), "0110");
  EXPECT_EQ(opens("/g/job_5"), "1110");  // for whoever looks from beside the steps
  EXPECT_EQ((*fence)->tasks_size(), 0);

  spec_.set_step_id(wire::kBatchStep);
  ASSERT_TRUE(fencing.put_up(spec_, "/g/job_5/step_batch"));
  EXPECT_EQ(opens("/g/job_5/step_batch"), "1110");

  spec_.set_step_id(1);
  spec_.mutable_share()->clear_gres();
  spec_.mutable_tasks(0)->clear_gpus();
  ASSERT_TRUE(fencing.put_up(spec_, "/g/job_5/step_1"));
  EXPECT_EQ(opens("/g/job_5/step_1"), "0000");
}

TEST_F(FencingTest, WhatRunsInAJobBesideItsStepsHasAllOfTheJobs) {
  if (!programs_here() || !groups_.usable()) GTEST_SKIP() << "no cgroup v2 here: " << why_not_;
  Fencing fencing = make();
  wire::BeginJob job;
  job.set_node("n0");
  job.set_job_id(5);
  *job.mutable_share() = spec_.job_share();
  const std::string name = groups_.name_of("n0", 5, 1, "sbcast_1");
  EXPECT_EQ(name, "job_5/step_sbcast_1");
  EXPECT_EQ(groups_.foreign_in(name), std::nullopt);  // the agent's own
  auto fence = fencing.put_up_beside(job, "sbcast_1", "/g/" + name);
  ASSERT_TRUE(fence && *fence);
  EXPECT_EQ(opens("/g/" + name), "1110");
  EXPECT_EQ(opens("/g/job_5"), "1110");
}

TEST_F(FencingTest, PretendedNodesOfOneJobHaveGroupsOfTheirOwn) {
  EXPECT_EQ(make().name_of("n0", "batch"), "batch");
  const Fencing pretended = make(true);
  EXPECT_NE(pretended.name_of("n0", "0"), pretended.name_of("n1", "0"));
}

TEST_F(FencingTest, TasksThatAreBoundToGpusHaveTheirOwn) {
  if (!programs_here() || !groups_.usable()) GTEST_SKIP() << "no cgroup v2 here: " << why_not_;
  Fencing fencing = make();
  spec_.mutable_tasks(0)->clear_gpus();
  spec_.mutable_tasks(0)->add_gpus(2);
  spec_.add_tasks()->add_gpus(1);
  auto fence = fencing.put_up(spec_, "/g/step_0");
  ASSERT_TRUE(fence && *fence);
  ASSERT_EQ((*fence)->tasks_size(), 2);
  EXPECT_EQ(opens((*fence)->tasks(0).cgroup()), "0010");
  EXPECT_EQ(opens((*fence)->tasks(1).cgroup()), "0100");
  EXPECT_EQ((*fence)->remove(2), "/g/step_0/user");

  spec_.set_shared_devices(true);
  fence = fencing.put_up(spec_, "/g/step_1");
  ASSERT_TRUE(fence && *fence);
  EXPECT_EQ((*fence)->tasks_size(), 0);
  EXPECT_EQ(opens("/g/step_1"), "0110");
}

TEST_F(FencingTest, AShardOpensItsGpu) {
  if (!programs_here() || !groups_.usable()) GTEST_SKIP() << "no cgroup v2 here: " << why_not_;
  Fencing fencing = make();
  spec_.mutable_share()->clear_gres();
  wire::GresShare& shards = *spec_.mutable_share()->add_gres();
  shards.set_name("shard");
  for (const std::uint64_t units : {0, 0, 0, 3}) shards.add_units(units);
  spec_.mutable_tasks(0)->clear_gpus();
  spec_.mutable_tasks(0)->add_gpus(3);
  ASSERT_TRUE(fencing.put_up(spec_, "/g/step_0"));
  EXPECT_EQ(opens("/g/step_0"), "0001");
}

TEST_F(FencingTest, GpuJobsAreRefusedWhereTheFenceHasAHole) {
  conf_.nodes[0].gres[0].devices[3].file = "";
  Fencing fencing = make();
  EXPECT_THAT(fencing.trouble(), HasSubstr("no file of GPU 3 is known: name it in gres.conf"));
  auto fence = fencing.put_up(spec_, "/g/step_0");
  ASSERT_FALSE(fence);
  EXPECT_THAT(std::string(fence.error().what()),
              HasSubstr("node n0 cannot keep jobs to their GPUs: ConstrainDevices"));
  EXPECT_EQ(make(true).trouble(), "") << "a pretended node has none to keep";
}

TEST_F(FencingTest, AProgramThatCannotBeAttachedIsAHole) {
  if (!programs_here() || !groups_.usable()) GTEST_SKIP() << "no cgroup v2 here: " << why_not_;
  conf_.limits->plugin = "cgroup/v2";
  kernel_.refuses = {"filter " + groups_.base()};
  Fencing fencing = make();
  EXPECT_FALSE(fencing.fences_devices());
  EXPECT_THAT(fencing.trouble(), HasSubstr("ConstrainDevices: bpf: Permission denied"));
  EXPECT_TRUE(fencing.active());
  EXPECT_FALSE(fencing.put_up(spec_, "/g/step_0"));
  EXPECT_FALSE(make(true).active()) << "pretended nodes go on";
}

TEST_F(FencingTest, TheControllersWordCountsToo) {
  conf_.limits.reset();
  said_.set_constrain_memory(true);
  EXPECT_THAT(make().trouble(), HasSubstr("limits memory, the one of this node does not"));
  EXPECT_EQ(make(true).trouble(), "");
  ASSERT_TRUE(make().put_up(spec_, "/g/step_0"));
  said_.set_constrain_devices(true);
  EXPECT_THAT(make().trouble(), HasSubstr("limits devices, the one of this node does not"));
  EXPECT_FALSE(make().put_up(spec_, "/g/step_0"));
}

TEST_F(FencingTest, AMachineThatIsNotInItsSlurmConfHasUnknownDevices) {
  conf_.nodes.clear();
  EXPECT_THAT(make().trouble(), HasSubstr("does not name it"));
  EXPECT_FALSE(make().put_up(spec_, "/g/step_0"));
}

TEST_F(FencingTest, ProcessesAreLimitedUnlessSomebodySaysNotTo) {
  const auto here = cgroup::hierarchies_here();
  const bool can =
      here.v1.contains("pids") || (here.v2_controllers.contains("pids") && groups_.usable());
  if (!can) GTEST_SKIP() << "nothing limits processes here";
  conf_.limits.reset();
  conf_.step_pids.reset();
  kernel_.files["/proc/sys/kernel/pid_max"] = "4194304\n";
  const auto most = [&] {
    Fencing fencing = make();
    EXPECT_EQ(fencing.trouble(), "");
    auto fence = fencing.put_up(spec_, "/g/job_5/step_0");
    return fence && *fence ? (*fence)->most_processes() : 0;
  };
  EXPECT_EQ(most(), 4096U);
  conf_.step_pids = 100;
  EXPECT_EQ(most(), 100U);
  for (int i = 1; i < 80; ++i) spec_.add_tasks();
  EXPECT_EQ(most(), 160U) << "all tasks can be started";
  conf_.step_pids = 0;
  EXPECT_FALSE(make().active());
  // Pretended nodes share a machine that is not theirs.
  conf_.step_pids.reset();
  EXPECT_FALSE(make(true).active());
  // What is asked for in so many words and cannot be had is said.
  for (const auto& [controller, where] : here.v1) kernel_.refuses.insert(where + "/slurm");
  for (const auto& [controller, where] : here.v1) {
    kernel_.refuses.insert(where + "/" + groups_.v1_name());
  }
  if (!here.v2_controllers.contains("pids")) {
    EXPECT_EQ(make().trouble(), "");
    EXPECT_FALSE(make().active());
    conf_.step_pids = 100;
    EXPECT_THAT(make().trouble(), HasSubstr("pids"));
  }
}

TEST_F(FencingTest, NothingAskedForCostsNothing) {
  conf_.limits.reset();
  Fencing fencing = make();
  EXPECT_FALSE(fencing.active());
  EXPECT_TRUE(kernel_.done.empty());
  auto fence = fencing.put_up(spec_, "/g/step_0");
  ASSERT_TRUE(fence);
  EXPECT_FALSE(*fence);
}

}  // namespace
}  // namespace berth::node
