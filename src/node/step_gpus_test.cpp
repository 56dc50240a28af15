// Processes on GPUs become figures of the tasks whose they are.
#include "node/step_gpus.h"

#include <gtest/gtest.h>

namespace berth::node {
namespace {

const NodeStep kFirst{"n1", {7, 1, 0}};
const NodeStep kSecond{"n1", {8, 1, 0}};
const NodeStep kNoGpus{"n1", {9, 1, 0}};
const NodeStep kOther{"n1", {10, 1, 0}};

class StepGpusTest : public testing::Test {
 protected:
  StepGpusTest() {
    gpus_.begin({.at = kFirst, .mark = "first", .uid = 1001, .has_gpus = true, .ranks = {4, 5}});
    gpus_.begin({.at = kSecond, .mark = "second", .uid = 1002, .has_gpus = true, .ranks = {0}});
    gpus_.begin({.at = kNoGpus, .mark = "none", .uid = 1001, .has_gpus = false, .ranks = {0}});
    marks_ = {{40, {"first", "4", 1001}}, {41, {"first", "4", 1001}},
              {50, {"first", "5", 1001}}, {60, {"second", "", 1002}},
              {70, {"none", "0", 1001}},  {80, {"first", "4", 1002}}};  // another user who says so
  }
  void round(std::vector<std::uint32_t> busy, std::vector<survey::Process> processes) {
    GpuRound out;
    for (std::uint32_t i = 0; i < busy.size(); ++i) {
      out.samples[i].gpu = i;
      out.samples[i].busy_percent = busy[i];
    }
    out.processes = std::move(processes);
    gpus_.add(out);
  }
  wire::StepFigures put(const NodeStep& at, bool ended) {
    wire::StepFigures out;
    gpus_.put(at, ended, out);
    return out;
  }

  std::map<std::uint32_t, ProcessMark> marks_;
  int looks_ = 0;
  StepGpus gpus_{[this](std::uint32_t pid) -> std::optional<ProcessMark> {
    ++looks_;
    const auto at = marks_.find(pid);
    return at == marks_.end() ? std::nullopt : std::optional(at->second);
  }};
};

TEST_F(StepGpusTest, EnergyIsOfTheGpusThatTheStepHas) {
  gpus_.begin({.at = kOther,
               .mark = "other",
               .uid = 1001,
               .has_gpus = true,
               .ranks = {2, 3},
               .gpus = {{1, 0}, {2, 1}}});
  GpuRound out;
  for (std::uint32_t i = 0; i < 4; ++i) out.samples[i].gpu = i;
  out.samples[0].power_mw = 500'000;  // somebody else's
  out.samples[1].power_mw = 300'000;
  gpus_.add(out);
  gpus_.add(out);
  EXPECT_EQ(put(kOther, true).gpu_energy().total(), 600'000U);
  EXPECT_EQ(put(kOther, true).gpu_energy().tasks(), 1U) << "it is of the node";
  EXPECT_FALSE(put(kFirst, true).has_gpu_energy()) << "no GPU of it tells";
}

TEST_F(StepGpusTest, MemoryIsOfProcessesAndBusyIsShared) {
  // Two processes of task 4 on two GPUs, task 5 and another job's step beside it on the second,
  // with strangers.
  round({80, 90, 50}, {{0, 40, 1000, {}},
                       {1, 41, 500, {}},
                       {1, 50, 200, {}},
                       {1, 60, 100, {}},
                       {2, 70, 900, {}},
                       {2, 80, 900, {}},
                       {2, 99, 900, {}}});
  round({0, 0, 0}, {{0, 40, 300, {}}});
  const wire::StepFigures now = put(kFirst, false);
  EXPECT_EQ(now.gpu_memory().tasks(), 2U);
  EXPECT_EQ(now.gpu_memory().total(), 300U << 20);
  EXPECT_EQ(now.gpu_memory().most(), 1500ULL << 20);
  EXPECT_EQ(now.gpu_memory().most_rank(), 4U);
  EXPECT_EQ(now.gpu_memory().least_rank(), 5U);
  EXPECT_EQ(now.gpu_busy().most(), 110U) << "80 and a third of 90";
  EXPECT_EQ(now.gpu_busy().total(), 55U + 15) << "means over two looks";
  EXPECT_EQ(now.gpu_busy().least(), 15U);
  const wire::StepFigures after = put(kFirst, true);
  EXPECT_EQ(after.gpu_memory().total(), 1700ULL << 20) << "the most of each task";
  EXPECT_EQ(put(kSecond, true).gpu_busy().most(), 30U);
  EXPECT_EQ(put(kSecond, true).gpu_memory().most(), 100ULL << 20) << "the first task by default";
}

TEST_F(StepGpusTest, StepsWithoutGpusOrLooksHaveNone) {
  EXPECT_FALSE(put(kFirst, true).has_gpu_memory());
  round({10}, {});
  EXPECT_TRUE(put(kFirst, true).has_gpu_memory()) << "it has GPUs and does nothing with them";
  EXPECT_EQ(put(kFirst, true).gpu_busy().total(), 0U);
  EXPECT_FALSE(put(kNoGpus, true).has_gpu_memory());
  gpus_.forget(kFirst);
  EXPECT_FALSE(put(kFirst, true).has_gpu_memory());
  EXPECT_FALSE(gpus_.knows(kFirst));
  gpus_.keep({kNoGpus});
  EXPECT_FALSE(gpus_.knows(kSecond));
  round({10}, {{0, 40, 1, {}}});
  EXPECT_EQ(looks_, 0) << "nobody is looked at when no step has GPUs";
}

TEST_F(StepGpusTest, TasksOnOneGpuBesideIdleOnesAreToldOnce) {
  // Jobs count the GPUs in another order than the library.
  gpus_.forget(kFirst);
  gpus_.begin({.at = kFirst,
               .mark = "first",
               .uid = 1001,
               .has_gpus = true,
               .ranks = {4, 5},
               .gpus = {{0, 2}, {1, 1}, {2, 0}}});
  const std::vector<survey::Process> crowd = {{0, 40, 1000, {}}, {0, 50, 1000, {}}};
  for (int i = 0; i < 9; ++i) round({80, 0, 0}, crowd);
  EXPECT_TRUE(gpus_.take_crowds().empty()) << "they may only have begun";
  round({80, 0, 0}, {{0, 40, 1000, {}}, {1, 50, 1000, {}}});
  for (int i = 0; i < 9; ++i) round({80, 0, 0}, crowd);
  EXPECT_TRUE(gpus_.take_crowds().empty()) << "one look at which each had its own";
  round({80, 0, 0}, crowd);
  const std::vector<StepGpus::Crowd> told = gpus_.take_crowds();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].at, kFirst);
  EXPECT_EQ(told[0].ranks.ranges(), "4-5");
  EXPECT_EQ(told[0].crowded.ranges(), "2");
  EXPECT_EQ(told[0].idle.ranges(), "0-1");
  round({80, 0, 0}, crowd);
  EXPECT_TRUE(gpus_.take_crowds().empty());
}

TEST_F(StepGpusTest, NoCrowdWhereEveryGpuIsUsed) {
  gpus_.forget(kFirst);
  gpus_.begin({.at = kFirst,
               .mark = "first",
               .uid = 1001,
               .has_gpus = true,
               .ranks = {4, 5},
               .gpus = {{0, 0}, {1, 1}}});
  for (int i = 0; i < 20; ++i) {
    round({80, 10, 0}, {{0, 40, 1000, {}}, {0, 50, 1000, {}}});  // GPU 1 works for somebody
    EXPECT_TRUE(gpus_.take_crowds().empty());
  }
}

}  // namespace
}  // namespace berth::node
