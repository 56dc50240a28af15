// What a step uses, while it runs and after.
#include <gmock/gmock.h>

#include "step/supervisor_test_fixture.h"

namespace berth::step {
namespace {

/// Task 1 writes more than task 0 and takes its time; each waits for a line of input.
constexpr const char* kWork =
    "head -c $((1000 + 5000 * SLURM_PROCID)) /dev/zero > /dev/null; "
    "i=0; while [ $i -lt $((SLURM_PROCID * 200000)) ]; do i=$((i + 1)); done; "
    "echo ready; read line";

TEST_F(SupervisorTest, WhatRunsIsMeasuredWhenSomebodyAsks) {
  tasks(2);
  shell(kWork);
  start();
  ASSERT_TRUE(until([&] { return out_[0] == "ready\n" && out_[1] == "ready\n"; }));
  const wire::StepFigures figures = measure().figures();
  EXPECT_EQ(measured_->pids_size(), 2);
  EXPECT_EQ(figures.cpu().tasks(), 2U);
  EXPECT_EQ(figures.cpu().most_rank(), 1U);
  EXPECT_GT(figures.cpu().most(), figures.cpu().least());
  EXPECT_GT(figures.memory().least(), 0U);
  EXPECT_GE(figures.address_space().least(), figures.memory().least());
  // With what the child that has ended wrote.
  EXPECT_GE(figures.written().least(), 1000U);
  EXPECT_EQ(figures.written().most_rank(), 1U);
  EXPECT_EQ(figures.written().most(), figures.written().least() + 5000);
  input("go\n", true);
  finish();
  const wire::StepFigures& after = ended_->usage().figures();
  EXPECT_EQ(after.written().tasks(), 2U);
  EXPECT_GE(after.written().total(), figures.written().total());
  EXPECT_GE(after.read().least(), figures.read().least());
  EXPECT_EQ(after.cpu().most_rank(), 1U);
  EXPECT_EQ(after.memory().most(), ended_->usage().max_rss_kb() * 1024);
  EXPECT_EQ(after.memory().total(), ended_->usage().total_rss_kb() * 1024);
  EXPECT_FALSE(after.has_address_space()) << "nobody looked while it ran";
}

TEST_F(SupervisorTest, ATaskThatHasEndedCountsWithWhatItUsed) {
  tasks(2);
  shell("head -c 70000 /dev/zero > /dev/null; [ $SLURM_PROCID = 0 ] || { echo up; read line; }");
  start();
  bool gone = false;
  on_frame_ = [&](const wire::Frame& frame) { gone |= frame.kind == wire::Kind::TasksExited; };
  ASSERT_TRUE(until([&] { return gone && out_[1] == "up\n"; }));
  const wire::StepFigures figures = measure().figures();
  EXPECT_EQ(measured_->pids_size(), 1);
  EXPECT_EQ(figures.written().tasks(), 2U);
  EXPECT_GE(figures.written().least(), 70000U);
  EXPECT_EQ(figures.memory().least(), 0U) << "it has none any more";
  EXPECT_EQ(figures.memory().least_rank(), 0U);
  input("", true);
  finish();
}

TEST_F(SupervisorTest, NothingIsLookedUpAtTheEndOfTasksWhereNothingIsGathered) {
  order_.set_gathers_bytes(false);
  tasks(2);
  shell("head -c 70000 /dev/zero > /dev/null");
  start();
  finish();
  const wire::StepFigures& after = ended_->usage().figures();
  EXPECT_FALSE(after.has_written());
  EXPECT_EQ(after.memory().tasks(), 2U);  // what the kernel tells by itself
}

TEST_F(SupervisorTest, OrphansAreTheirTasks) {
  tasks(2);
  // Only task 1 leaves one behind: its parent goes at once.
  shell(
      "[ $SLURM_PROCID = 0 ] || (sleep 600 & ) ; "
      "[ $SLURM_PROCID = 0 ] || ( env -i sleep 600 & ) ; echo up; read line");
  start();
  ASSERT_TRUE(until([&] { return out_[0] == "up\n" && out_[1] == "up\n"; }));
  ASSERT_TRUE(until([&] { return measure().pids_size() == 3; }))
      << "two tasks and the orphan that says whose it is";
  EXPECT_EQ(measured_->figures().address_space().most_rank(), 1U);
  input("", true);
  finish();
}

}  // namespace
}  // namespace berth::step
