// -N: counts, ranges, size lists, suffixes, and what is refused.
#include "text/node_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::text {
namespace {

TEST(NodeCount, ReadsEveryForm) {
  struct Row {
    const char* text;
    std::uint32_t min;
    std::uint32_t max;
    bool range;
    std::vector<std::uint32_t> sizes;
  };
  const Row rows[] = {
      {"4", 4, 4, false, {}},
      {"2-4", 2, 4, true, {}},
      {"3-3", 3, 3, true, {}},
      {"2k", 2048, 2048, false, {}},
      {"1-2M", 1, 2097152, true, {}},
      {"2,4,8", 2, 8, true, {2, 4, 8}},
      {"8,2,2", 2, 8, true, {2, 8}},
      {"1-9:4", 1, 9, true, {1, 5, 9}},
      {"1-15:4", 1, 13, true, {1, 5, 9, 13}},
      {"1,4-8:2", 1, 8, true, {1, 4, 6, 8}},
      {"0", 0, 0, false, {}},
      {"4294967295", 4294967295, 4294967295, false, {}},
  };
  for (const Row& row : rows) {
    const auto got = parse_node_count(row.text);
    ASSERT_TRUE(got) << row.text;
    EXPECT_EQ(got->min, row.min) << row.text;
    EXPECT_EQ(got->max, row.max) << row.text;
    EXPECT_EQ(got->range, row.range) << row.text;
    EXPECT_THAT(got->sizes, testing::ElementsAreArray(row.sizes)) << row.text;
  }
}

TEST(NodeCount, RefusesTheRest) {
  for (const char* text : {"", "-1", "a", "2-", "-4", "4-2", "1,", ",1", "1-4:0", "1-4:", "1:2",
                           "4294967296", "4194304k", "1e9", "1-4294967295:1", "2kk", "k"}) {
    EXPECT_FALSE(parse_node_count(text)) << text;
  }
}

}  // namespace
}  // namespace berth::text
