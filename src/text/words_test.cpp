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
  EXPECT_TRUE(equal_ignoring_case("NodeName", "NODENAME"));
  EXPECT_FALSE(equal_ignoring_case("NodeName", "NodeNam"));
}

TEST(Words, NearestFindsSlips) {
  const std::vector<std::string> known = {"NodeName", "PartitionName", "Gres", "GresTypes", "a100"};
  struct Row {
    const char* word;
    const char* found;
  };
  const Row rows[] = {
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
  for (const Row& row : rows) EXPECT_EQ(nearest(row.word, known), row.found) << row.word;
  EXPECT_EQ(nearest(std::string(100000, 'a'), known), "");
}

}  // namespace
}  // namespace berth::text
