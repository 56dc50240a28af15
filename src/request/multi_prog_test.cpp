#include "request/multi_prog.h"

#include <gtest/gtest.h>

namespace berth::request {
namespace {

std::string checked(std::optional<std::string_view> content, std::uint32_t ntasks) {
  const Result<void> result = check_multi_prog("mp.conf", content, ntasks);
  if (result) return "ok";
  std::string out;
  for (const Message& message : result.error().messages) out += message.text + "|";
  return out;
}

TEST(MultiProg, EveryRankNeedsALine) {
  EXPECT_EQ(checked("0 echo zero\n1 echo one\n", 2), "ok");
  EXPECT_EQ(checked("0 echo zero\n1 echo one\n", 3),
            "Configuration file mp.conf invalid, no record for task id 2|");
  EXPECT_EQ(checked("# c\n\n0,2 echo\n* echo %t %o\n", 5), "ok");
  EXPECT_EQ(checked("0-3 echo\n", 4), "ok");
}

TEST(MultiProg, MistakesAreNamed) {
  EXPECT_EQ(checked(std::nullopt, 1), "Could not open multi_prog config file mp.conf|");
  EXPECT_EQ(checked("5 echo\n", 3),
            "Invalid task id, 5 >= ntasks|Line 1 of configuration file mp.conf invalid|");
  EXPECT_EQ(checked("0-x echo\n", 1), "Line 1 of configuration file mp.conf invalid|");
  EXPECT_EQ(checked("0\n", 1), "Line 1 of configuration file mp.conf invalid|");
  EXPECT_EQ(checked("0-4294967295 echo\n", 2),
            "Invalid task id, 2 >= ntasks|Line 1 of configuration file mp.conf invalid|");
}

}  // namespace
}  // namespace berth::request
