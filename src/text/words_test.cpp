// Words: splitting, trimming, case, and the nearest known word.
#include "text/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::text {
namespace {

using testing::ElementsAre;

TEST(Words, SplitKeepsEmptyParts) {
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split("a,", ','), ElementsAre("a", ""));
}

TEST(Words, TrimAndCase) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim("  "), "");
  EXPECT_EQ(to_lower("GrEs1"), "gres1");
  EXPECT_EQ(to_upper("GrEs_1é"), "GRES_1é");
  EXPECT_TRUE(equal_ignoring_case("NodeName", "NODENAME"));
  EXPECT_FALSE(equal_ignoring_case("NodeName", "NodeNam"));
}

TEST(Words, NearestFindsSlips) {
  const std::vector<std::string> known = {"NodeName", "PartitionName", "Gres", "GresTypes", "a100"};
  struct Slip {
    const char* word;
    const char* found;
  };
  const Slip rows[] = {
      {"NodeNme", "NodeName"},
      {"nodename", "NodeName"},
      {"PartitoinName", "PartitionName"},
      {"GresType", "GresTypes"},
      {"Grse", "Gres"},
      {"a10", "a100"},
      {"completelydifferent", ""},
      {"", ""},
      {"x", ""},
  };
  for (const Slip& row : rows) EXPECT_EQ(nearest(row.word, known), row.found) << row.word;
  EXPECT_EQ(nearest(std::string(100000, 'a'), known), "");
}

TEST(Words, APathAsSeenFromADirectory) {
  EXPECT_EQ(absolute("out.txt", "/home/alice"), "/home/alice/out.txt");
  EXPECT_EQ(absolute("out.txt", "/"), "/out.txt");
  EXPECT_EQ(absolute("/dev/null", "/home/alice"), "/dev/null");
  EXPECT_EQ(absolute("", "/home/alice"), "");
}

}  // namespace
}  // namespace berth::text
