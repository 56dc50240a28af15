#include "command/launch_multi_prog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::command {
namespace {

using testing::ElementsAre;

TEST(MultiProg, RanksOffsetsAndRest) {
  const auto commands = multi_prog_commands(
      "# who does what\n4-5,1 echo task:%t offset:%o\n* sh -c 'echo \"rest %o\"'\n0 hostname\n", 6);
  ASSERT_EQ(commands.size(), 6U);
  EXPECT_THAT(commands[0], ElementsAre("hostname"));
  EXPECT_THAT(commands[1], ElementsAre("echo", "task:1", "offset:2"));
  EXPECT_THAT(commands[2], ElementsAre("sh", "-c", "echo \"rest 2\""));
  EXPECT_THAT(commands[3], ElementsAre("sh", "-c", "echo \"rest 3\""));
  EXPECT_THAT(commands[5], ElementsAre("echo", "task:5", "offset:1"));
}

TEST(MultiProg, DoubleQuotesDoNotGroupAndAreToldAbout) {
  const std::string file = "0 sh -c \"echo a\"\n";
  EXPECT_THAT(multi_prog_commands(file, 1)[0], ElementsAre("sh", "-c", "\"echo", "a\""));
  EXPECT_THAT(multi_prog_advice(file), testing::HasSubstr("line 1"));
  EXPECT_EQ(multi_prog_advice("0 sh -c 'echo \"a\"'\n"), "");
}

TEST(MultiProg, LinesAreJoinedByABackslash) {
  const auto commands = multi_prog_commands("0 echo a \\\nb\n", 1);
  EXPECT_THAT(commands[0], ElementsAre("echo", "a", "b"));
}

}  // namespace
}  // namespace berth::command
