#include "command/launch_exits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace berth::command {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TaskExits, GroupsTasksOfANodeThatEndedAlike) {
  TaskExits exits;
  for (const std::uint32_t rank : {3U, 0U, 1U, 2U, 6U}) exits.add("gpu1", rank, 2 << 8);
  exits.add("gpu1", 5, SIGKILL);
  exits.add("gpu2", 4, 0);
  EXPECT_THAT(exits.lines(false),
              ElementsAre("gpu1: task 5: Killed", "gpu1: tasks 0-3,6: Exited with exit code 2"));
  EXPECT_THAT(exits.lines(false), IsEmpty());
  EXPECT_EQ(exits.count(), 7U);
  EXPECT_EQ(exits.exit_code(), 137);
  EXPECT_EQ(exits.wait_status(), SIGKILL);
}

TEST(TaskExits, HighestCodeWithoutASignal) {
  TaskExits exits;
  exits.add("n", 0, 5 << 8);
  exits.add("n", 1, 3 << 8);
  EXPECT_EQ(exits.exit_code(), 5);
  EXPECT_EQ(exits.wait_status(), 5 << 8);
  EXPECT_FALSE(exits.any_terminated());
}

TEST(TaskExits, OutOfMemoryIsExitCodeOne) {
  TaskExits exits;
  exits.add("n", 0, kOutOfMemorySignal);
  EXPECT_THAT(exits.lines(false), ElementsAre("n: task 0: Out Of Memory"));
  EXPECT_EQ(exits.exit_code(), 1);
}

TEST(TaskExits, ReducedLinesAreSaidOnce) {
  TaskExits exits;
  exits.add("a", 0, 1 << 8);
  exits.add("b", 1, 1 << 8);
  EXPECT_THAT(exits.lines(true), ElementsAre("a: task 0: Exited with exit code 1"));
}

TEST(TaskExits, SameTaskCountsOnce) {
  TaskExits exits;
  exits.add("a", 0, 1 << 8);
  exits.add("a", 0, 9 << 8);
  EXPECT_EQ(exits.count(), 1U);
  EXPECT_EQ(exits.exit_code(), 1);
}

TEST(EndOfTask, CoreDumpIsSaid) {
  EXPECT_EQ(end_of_task(SIGSEGV | 0x80), "Segmentation fault (core dumped)");
}

}  // namespace
}  // namespace berth::command
