// Counts and ranks of every example of the layout rules.
#include "place/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::place {
namespace {

using request::NodeDist;

struct LayoutRow {
  const char* name;
  std::vector<std::uint32_t> room;
  LayoutAsk ask;
  Layout expected;
};

class LayoutTable : public testing::TestWithParam<LayoutRow> {};

TEST_P(LayoutTable, DealsAndNumbers) {
  const LayoutRow& row = GetParam();
  EXPECT_EQ(lay_out(row.ask, row.room), row.expected) << row.name;
}

INSTANTIATE_TEST_SUITE_P(
    Rules, LayoutTable,
    testing::Values(
        LayoutRow{
            "block", {4, 4, 4, 4}, {6, NodeDist::block, false, 1, {}}, {{0, 1}, {2, 3}, {4}, {5}}},
        LayoutRow{"cyclic",
                  {4, 4, 4, 4},
                  {6, NodeDist::cyclic, false, 1, {}},
                  {{0, 4}, {1, 5}, {2}, {3}}},
        LayoutRow{"pack", {4, 4}, {6, NodeDist::block, true, 1, {}}, {{0, 1, 2, 3}, {4, 5}}},
        LayoutRow{"plane of 3",
                  {4, 4, 4, 4},
                  {10, NodeDist::plane, false, 3, {}},
                  {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9}}},
        LayoutRow{
            "plane of 2", {4, 4}, {8, NodeDist::plane, false, 2, {}}, {{0, 1, 4, 5}, {2, 3, 6, 7}}},
        LayoutRow{
            "plane of 4",
            {8, 8, 8, 8},
            {21, NodeDist::plane, false, 4, {}},
            {{0, 1, 2, 3, 16, 17, 18, 19}, {4, 5, 6, 7, 20}, {8, 9, 10, 11}, {12, 13, 14, 15}}},
        LayoutRow{"unequal block",
                  {6, 1, 1},
                  {8, NodeDist::block, false, 1, {}},
                  {{0, 1, 2, 3, 4, 5}, {6}, {7}}},
        LayoutRow{"unequal cyclic",
                  {6, 1, 1},
                  {8, NodeDist::cyclic, false, 1, {}},
                  {{0, 3, 4, 5, 6, 7}, {1}, {2}}},
        LayoutRow{"unequal plane",
                  {6, 1, 1},
                  {8, NodeDist::plane, false, 2, {}},
                  {{0, 1, 4, 5, 6, 7}, {2}, {3}}},
        LayoutRow{
            "unequal, few", {6, 1, 1}, {4, NodeDist::block, false, 1, {}}, {{0, 1}, {2}, {3}}},
        LayoutRow{"unequal pack", {6, 1, 1}, {4, NodeDist::block, true, 1, {}}, {{0, 1}, {2}, {3}}},
        LayoutRow{"arbitrary",
                  {1, 1, 1},
                  {4, NodeDist::arbitrary, false, 1, {2, 0, 2, 1}},
                  {{1}, {3}, {0, 2}}},
        LayoutRow{"4+1 block", {4, 1}, {5, NodeDist::block, false, 1, {}}, {{0, 1, 2, 3}, {4}}},
        LayoutRow{"4+1 pack", {4, 1}, {5, NodeDist::block, true, 1, {}}, {{0, 1, 2, 3}, {4}}},
        LayoutRow{"4+4 block", {4, 4}, {5, NodeDist::block, false, 1, {}}, {{0, 1, 2}, {3, 4}}},
        LayoutRow{"no nodes", {}, {5, NodeDist::block, false, 1, {}}, {}}));

TEST(Layout, OvercommitGoesOnInTurn) {
  const std::vector<std::uint32_t> four(4, 4);
  for (const auto method : {NodeDist::block, NodeDist::cyclic, NodeDist::plane}) {
    EXPECT_THAT(counts_of(lay_out({20, method, false, 1, {}}, four)),
                testing::ElementsAre(5, 5, 5, 5));
  }
  const std::vector<std::uint32_t> unequal = {6, 1, 1};
  EXPECT_THAT(counts_of(lay_out({10, NodeDist::block, false, 1, {}}, unequal)),
              testing::ElementsAre(7, 2, 1));
  EXPECT_THAT(counts_of(lay_out({10, NodeDist::cyclic, false, 1, {}}, unequal)),
              testing::ElementsAre(6, 2, 2));
  EXPECT_THAT(counts_of(lay_out({10, NodeDist::block, true, 1, {}}, unequal)),
              testing::ElementsAre(7, 2, 1));
}

TEST(Layout, EveryRankOnce) {
  const std::vector<std::uint32_t> room = {3, 1, 5, 2};
  for (const auto method : {NodeDist::block, NodeDist::cyclic, NodeDist::plane}) {
    for (std::uint32_t tasks = 1; tasks < 30; ++tasks) {
      for (std::uint32_t size = 1; size < 5; ++size) {
        std::vector<std::uint32_t> seen;
        for (const auto& ranks : lay_out({tasks, method, false, size, {}}, room)) {
          EXPECT_TRUE(std::is_sorted(ranks.begin(), ranks.end()));
          seen.insert(seen.end(), ranks.begin(), ranks.end());
        }
        std::sort(seen.begin(), seen.end());
        ASSERT_EQ(seen.size(), tasks);
        for (std::uint32_t i = 0; i < tasks; ++i) EXPECT_EQ(seen[i], i);
      }
    }
  }
}

}  // namespace
}  // namespace berth::place
