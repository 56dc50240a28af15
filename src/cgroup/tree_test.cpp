// The groups of a step under every driver, on a kernel that only remembers.
#include "cgroup/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cgroup/limits.h"

namespace berth::cgroup {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kMiB = 1048576;

class TreeTest : public testing::Test {
 protected:
  TreeTest() {
    here_.v2 = "/v2";
    here_.v1 = {{"memory", "/m"}, {"devices", "/d"}, {"cpuset", "/c"}};
    kernel_.files["/c/cpuset.mems"] = "0\n";
    kernel_.files["/c/cpuset.cpus"] = "0-7\n";
    ask_.uid = 7;
    ask_.job = 5;
    ask_.step = "0";
    ask_.cgroup = "/v2/s/job_5/step_0";
    ask_.of_job.memory = 100 * kMiB;
    ask_.of_step.memory = 64 * kMiB;
    ask_.of_job.cpus = "0-3";
    ask_.of_step.cpus = "1";
    ask_.devices = {{false, 195, 1, true}, {false, 195, std::nullopt, false}};
    ask_.job_devices = {
        {false, 195, 1, true}, {false, 195, 2, true}, {false, 195, std::nullopt, false}};
  }
  Tree open(Means means, bool swap = false) {
    Tree tree(kernel_, here_, means, swap, {"/v2/s", "slurm"}, missing_);
    tree.know_devices({{false, 195, 0}, {false, 195, 1}, {false, 195, 2}});
    kernel_.done.clear();
    return tree;
  }

  FakeKernel kernel_;
  Hierarchies here_;
  StepAsk ask_;
  std::vector<std::string> missing_;
};

TEST_F(TreeTest, PureV2) {
  Tree tree = open({Version::v2, Version::v2, Version::v2});
  EXPECT_THAT(missing_, IsEmpty());
  for (const char* above : {"/v2", "/v2/s"}) {
    EXPECT_TRUE(kernel_.files.contains(std::string(above) + "/cgroup.subtree_control"));
  }
  const auto fence = tree.put_up(ask_);
  ASSERT_TRUE(fence) << fence.error().what();
  EXPECT_THAT(kernel_.done, ElementsAre("write /v2/s/job_5/cgroup.subtree_control=+memory",
                                        "write /v2/s/job_5/memory.max=104857600",
                                        "write /v2/s/job_5/step_0/memory.max=67108864",
                                        "write /v2/s/job_5/cgroup.subtree_control=+cpuset",
                                        "write /v2/s/job_5/cpuset.cpus=0-3",
                                        "write /v2/s/job_5/step_0/cpuset.cpus=1",
                                        "filter /v2/s/job_5", "filter /v2/s/job_5/step_0"));
  EXPECT_EQ(kernel_.filters["/v2/s/job_5"], ask_.job_devices);
  EXPECT_EQ(kernel_.filters["/v2/s/job_5/step_0"], ask_.devices);
  EXPECT_THAT(fence->join, IsEmpty());
  EXPECT_THAT(fence->remove, IsEmpty());
  EXPECT_EQ(fence->memory_events, "/v2/s/job_5/step_0/memory.events");
}

TEST_F(TreeTest, V1) {
  Tree tree = open({Version::v1, Version::v1, Version::v1});
  EXPECT_THAT(missing_, IsEmpty());
  EXPECT_EQ(kernel_.files["/c/slurm/cpuset.cpus"], "0-7");
  const auto fence = tree.put_up(ask_);
  ASSERT_TRUE(fence) << fence.error().what();
  EXPECT_THAT(fence->join, ElementsAre("/m/slurm/uid_7/job_5/step_0", "/c/slurm/uid_7/job_5/step_0",
                                       "/d/slurm/uid_7/job_5/step_0"));
  EXPECT_EQ(kernel_.files["/m/slurm/uid_7/job_5/memory.limit_in_bytes"], "104857600");
  EXPECT_EQ(kernel_.files["/m/slurm/uid_7/job_5/step_0/memory.limit_in_bytes"], "67108864");
  EXPECT_EQ(kernel_.files["/c/slurm/uid_7/cpuset.cpus"], "0-7");
  EXPECT_EQ(kernel_.files["/c/slurm/uid_7/job_5/cpuset.cpus"], "0-3");
  EXPECT_EQ(kernel_.files["/c/slurm/uid_7/job_5/step_0/cpuset.cpus"], "1");
  EXPECT_EQ(kernel_.files["/c/slurm/uid_7/job_5/step_0/cpuset.mems"], "0");
  EXPECT_THAT(kernel_.done, Contains("write /d/slurm/uid_7/job_5/step_0/devices.deny=c 195:0 rwm"));
  EXPECT_THAT(kernel_.done, Contains("write /d/slurm/uid_7/job_5/step_0/devices.deny=c 195:2 rwm"));
  EXPECT_THAT(kernel_.done, testing::Not(Contains(HasSubstr("195:1"))));
  EXPECT_EQ(kernel_.files["/d/slurm/uid_7/job_5/devices.deny"], "c 195:0 rwm");
  EXPECT_EQ(fence->memory_events, "/m/slurm/uid_7/job_5/step_0/memory.oom_control");
  EXPECT_EQ(tree.found().size(), 3U);

  for (const std::string& group : fence->remove) EXPECT_TRUE(kernel_.remove(group)) << group;
  EXPECT_THAT(tree.found(), IsEmpty());
  tree.tidy(7, 5);
  EXPECT_THAT(kernel_.made, ElementsAre("/c/slurm", "/d/slurm", "/m/slurm"));
  tree.leave();
  EXPECT_THAT(kernel_.made, IsEmpty());
}

TEST_F(TreeTest, TasksThatDifferHaveGroupsOfTheirOwn) {
  const std::vector<DeviceRule> none = {{false, 195, std::nullopt, false}};
  ask_.tasks = {ask_.devices, none};
  ask_.of_job = ask_.of_step = {};
  Tree v2 = open({Version::v2, Version::none, Version::none});
  auto fence = v2.put_up(ask_);
  ASSERT_TRUE(fence) << fence.error().what();
  ASSERT_EQ(fence->tasks.size(), 2U);
  EXPECT_EQ(fence->tasks[1].cgroup, "/v2/s/job_5/step_0/user/task_1");
  EXPECT_EQ(kernel_.filters[fence->tasks[1].cgroup], none);
  EXPECT_THAT(fence->remove,
              ElementsAre("/v2/s/job_5/step_0/user/task_1", "/v2/s/job_5/step_0/user/task_0",
                          "/v2/s/job_5/step_0/user"));
  Tree v1 = open({Version::v1, Version::none, Version::none});
  fence = v1.put_up(ask_);
  ASSERT_TRUE(fence) << fence.error().what();
  EXPECT_THAT(fence->join, IsEmpty());
  EXPECT_THAT(fence->tasks[1].join, ElementsAre("/d/slurm/uid_7/job_5/step_0/task_1"));
  EXPECT_THAT(kernel_.done,
              Contains("write /d/slurm/uid_7/job_5/step_0/task_1/devices.deny=c 195:1 rwm"));
  for (const std::string& group : fence->remove) EXPECT_TRUE(kernel_.remove(group)) << group;
  EXPECT_THAT(v1.found(), IsEmpty());
}

TEST_F(TreeTest, AJobsGroupIsFilteredOnceAndAnew) {
  Tree tree = open({Version::v2, Version::none, Version::none});
  ask_.of_job = ask_.of_step = {};
  ASSERT_TRUE(tree.put_up(ask_));
  kernel_.done.clear();
  ask_.cgroup = "/v2/s/job_5/step_1";
  ASSERT_TRUE(tree.put_up(ask_));
  EXPECT_THAT(kernel_.done, ElementsAre("filter /v2/s/job_5/step_1"));
  // Another share, or another directory: the job was requeued.
  kernel_.done.clear();
  ask_.job_devices.erase(ask_.job_devices.begin() + 1);
  ASSERT_TRUE(tree.put_up(ask_));
  EXPECT_THAT(kernel_.done, ElementsAre("filter /v2/s/job_5", "filter /v2/s/job_5/step_1"));
  kernel_.done.clear();
  kernel_.filters.clear();
  ASSERT_TRUE(tree.put_up(ask_));
  EXPECT_THAT(kernel_.done, ElementsAre("filter /v2/s/job_5", "filter /v2/s/job_5/step_1"));
}

TEST_F(TreeTest, AGroupOfV1ThatWasThereIsOpenedFirst) {
  Tree tree = open({Version::v1, Version::none, Version::none});
  kernel_.made.insert({"/d/slurm/uid_7", "/d/slurm/uid_7/job_5", "/d/slurm/uid_7/job_5/gpu_probe"});
  ASSERT_TRUE(tree.put_up(ask_));
  EXPECT_THAT(kernel_.done, Contains("write /d/slurm/uid_7/job_5/devices.allow=c 195:1 rwm"));
  EXPECT_THAT(kernel_.done, Contains("write /d/slurm/uid_7/job_5/devices.allow=c 195:2 rwm"));
  EXPECT_THAT(kernel_.done, Contains("write /d/slurm/uid_7/job_5/devices.deny=c 195:0 rwm"));
}

TEST_F(TreeTest, WhatOthersMadeBesideTheStepsGoesWithTheLast) {
  kernel_.made = {"/j/job_5", "/j/job_5/gpu_probe", "/j/job_5/step_0"};
  EXPECT_TRUE(remove_job_group(kernel_, "/j/job_5"));  // not now: a step is in it
  EXPECT_EQ(kernel_.made.size(), 3U);
  kernel_.made.erase("/j/job_5/step_0");
  kernel_.made.insert("/j/job_5/gpu_probe/busy");  // as if somebody were in it
  EXPECT_FALSE(remove_job_group(kernel_, "/j/job_5"));
  kernel_.made.erase("/j/job_5/gpu_probe/busy");
  EXPECT_TRUE(remove_job_group(kernel_, "/j/job_5"));
  EXPECT_THAT(kernel_.made, IsEmpty());
}

TEST_F(TreeTest, AllOrNothing) {
  Tree tree = open({Version::v1, Version::v1, Version::none});
  kernel_.refuses = {"/d/slurm/uid_7/job_5/step_0/devices.deny"};
  const auto fence = tree.put_up(ask_);
  ASSERT_FALSE(fence);
  EXPECT_THAT(std::string(fence.error().what()), HasSubstr("devices.deny"));
  EXPECT_THAT(kernel_.made, ElementsAre("/d/slurm", "/m/slurm"));
}

TEST_F(TreeTest, ALeftoverIsReplaced) {
  Tree tree = open({Version::v1, Version::none, Version::none});
  ASSERT_TRUE(tree.put_up(ask_));
  ASSERT_TRUE(tree.put_up(ask_));
  EXPECT_THAT(kernel_.done, Contains("remove /d/slurm/uid_7/job_5/step_0"));
}

TEST_F(TreeTest, WhatHoldsNoStepIsSwept) {
  Tree tree = open({Version::v1, Version::none, Version::none});
  ASSERT_TRUE(tree.put_up(ask_));
  kernel_.made.insert({"/d/slurm/uid_7/job_4", "/d/slurm/uid_8", "/d/slurm/uid_8/job_3"});
  tree.sweep();
  EXPECT_THAT(kernel_.made, ElementsAre("/d/slurm", "/d/slurm/uid_7", "/d/slurm/uid_7/job_5",
                                        "/d/slurm/uid_7/job_5/step_0"));
}

TEST_F(TreeTest, SaysWhatCannotBeHad) {
  kernel_.refuses = {"/v2/cgroup.subtree_control", "filter /v2/s", "/c/slurm"};
  Tree tree = open({Version::v2, Version::v2, Version::v1}, true);
  EXPECT_FALSE(tree.fences());
  EXPECT_THAT(missing_, ElementsAre(HasSubstr("ConstrainDevices"), HasSubstr("memory of cgroup v2"),
                                    HasSubstr("cpuset (cgroup v1)")));
  missing_.clear();
  kernel_.refuses.clear();
  Tree without = open({Version::none, Version::v1, Version::none}, true);
  EXPECT_THAT(missing_, ElementsAre(HasSubstr("swapaccount=1")));
}

TEST_F(TreeTest, SwapOnTopOfMemory) {
  kernel_.files["/m/slurm/memory.memsw.limit_in_bytes"] = "9";
  const MemoryRules rules{.ram = true, .swap = true, .allowed_swap_percent = 50};
  ask_.of_step = ask_.of_job = {};
  limit_memory(rules, 64, 1000, ask_.of_job);
  limit_memory(rules, 64, 1000, ask_.of_step);
  Tree v1 = open({Version::none, Version::v1, Version::none}, true);
  ASSERT_TRUE(v1.put_up(ask_));
  const std::string step = "/m/slurm/uid_7/job_5/step_0/";
  EXPECT_EQ(kernel_.files[step + "memory.limit_in_bytes"], std::to_string(64 * kMiB));
  EXPECT_EQ(kernel_.files[step + "memory.memsw.limit_in_bytes"], std::to_string(96 * kMiB));
}

TEST_F(TreeTest, ProcessesAreLimitedInTheStepAlone) {
  here_.v1["pids"] = "/p";
  ask_.of_step.processes = 4096;
  Tree old = open({.processes = Version::v1});
  auto fence = old.put_up(ask_);
  ASSERT_TRUE(fence) << fence.error().what();
  EXPECT_THAT(kernel_.done, ElementsAre("make /p/slurm/uid_7", "make /p/slurm/uid_7/job_5",
                                        "make /p/slurm/uid_7/job_5/step_0",
                                        "write /p/slurm/uid_7/job_5/step_0/pids.max=4096"));
  EXPECT_THAT(fence->join, ElementsAre("/p/slurm/uid_7/job_5/step_0"));
  EXPECT_THAT(fence->remove, ElementsAre("/p/slurm/uid_7/job_5/step_0"));
  EXPECT_EQ(fence->process_events, "/p/slurm/uid_7/job_5/step_0/pids.events");
  EXPECT_TRUE(old.tidy(7, 5));

  Tree tree = open({.processes = Version::v2});
  EXPECT_TRUE(tree.fences());
  fence = tree.put_up(ask_);
  ASSERT_TRUE(fence) << fence.error().what();
  EXPECT_THAT(kernel_.done, ElementsAre("write /v2/s/job_5/cgroup.subtree_control=+pids",
                                        "write /v2/s/job_5/step_0/pids.max=4096"));
  EXPECT_THAT(fence->join, IsEmpty());
  EXPECT_EQ(fence->process_events, "/v2/s/job_5/step_0/pids.events");
}

TEST(ProcessLimits, AreEnoughForTheStepAndAPartOfTheMachine) {
  EXPECT_EQ(usual_process_limit(1, 1, 4194304), 4096U);
  EXPECT_EQ(usual_process_limit(1, 64, 4194304), 32768U);
  EXPECT_EQ(usual_process_limit(128, 64, 4194304), 65536U);
  EXPECT_EQ(usual_process_limit(1, 64, 32768), 8192U);
  EXPECT_EQ(usual_process_limit(1, 1, 4000), 1000U);
  EXPECT_EQ(usual_process_limit(2000, 1, 4000), 4000U) << "all tasks can be started";
}

TEST(MemoryLimits, ByTheRulesOfCgroupConf) {
  const auto limit = [](const MemoryRules& rules, std::uint64_t given) {
    Limits limits;
    limit_memory(rules, given, 1000, limits);
    return limits;
  };
  EXPECT_FALSE(limit({.ram = true}, 0).memory) << "nothing was asked for";
  EXPECT_FALSE(limit({}, 100).memory);
  EXPECT_EQ(limit({.ram = true}, 100).memory, 100 * kMiB);
  EXPECT_EQ(limit({.ram = true, .allowed_ram_percent = 110}, 100).memory, 110 * kMiB);
  EXPECT_EQ(limit({.ram = true, .max_ram_percent = 50}, 900).memory, 500 * kMiB);
  EXPECT_EQ(limit({.ram = true}, 1).memory, 30 * kMiB);
  EXPECT_EQ(limit({.ram = true, .min_ram_mb = 2}, 1).memory, 2 * kMiB);
  const Limits both = limit({.ram = true, .swap = true, .allowed_swap_percent = 10}, 100);
  EXPECT_EQ(both.swap, 10 * kMiB);
  EXPECT_EQ(both.memory_and_swap, 110 * kMiB);
  const Limits sum = limit({.swap = true}, 100);
  EXPECT_FALSE(sum.memory);
  EXPECT_EQ(sum.memory_and_swap, 100 * kMiB);
}

TEST(Counts, AreFoundByTheirWord) {
  EXPECT_EQ(count_named("low 0\noom 4\noom_kill 3\noom_group_kill 9\n", "oom_kill"), 3U);
  EXPECT_EQ(count_named("oom_kill_disable 0\nunder_oom 0\noom_kill 12", "oom_kill"), 12U);
  EXPECT_EQ(count_named("oom_kill_disable 1\n", "oom_kill"), 0U);
  EXPECT_EQ(count_named("oom_kill x\n", "oom_kill"), 0U);
}

}  // namespace
}  // namespace berth::cgroup
