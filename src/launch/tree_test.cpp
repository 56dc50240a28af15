#include "launch/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace berth::launch {
namespace {

using testing::ElementsAre;

TEST(Tree, SharesAreNeighboursOfNearlyOneSize) {
  EXPECT_THAT(divide(7, 3), ElementsAre(Share{0, 3}, Share{3, 2}, Share{5, 2}));
  EXPECT_THAT(divide(3, 3), ElementsAre(Share{0, 1}, Share{1, 1}, Share{2, 1}));
  EXPECT_THAT(divide(2, 16), ElementsAre(Share{0, 1}, Share{1, 1}));
  EXPECT_THAT(divide(3, 0), ElementsAre(Share{0, 1}, Share{1, 1}, Share{2, 1}));
  EXPECT_TRUE(divide(0, 4).empty());
}

wire::Relay plan_of(int nodes, std::uint32_t width) {
  wire::Relay plan;
  plan.set_width(width);
  plan.add_programs()->add_argv("a");
  plan.add_programs()->add_argv("b");
  for (int i = 0; i < nodes; ++i) {
    wire::RelayNode& node = *plan.add_nodes();
    node.mutable_ticket()->set_node("n" + std::to_string(i));
    node.mutable_address()->set_unix_path("/n" + std::to_string(i));
    node.set_program(i % 2);
  }
  return plan;
}

/// Follows the frames as agents and relays do; counts how often each node is launched.
struct Walk {
  std::map<std::string, int> launched;
  int deepest = 0;
  std::size_t widest = 0;

  void follow(const std::vector<Branch>& branches, int depth) {
    deepest = std::max(deepest, depth);
    widest = std::max(widest, branches.size());
    for (const Branch& branch : branches) {
      wire::Frame frame;
      ASSERT_EQ(wire::scan_frame(branch.request, wire::kMostBytes, frame), wire::Scan::complete);
      if (frame.kind == wire::Kind::Launch) {
        const auto launch = wire::decode<wire::Launch>(frame.payload);
        ASSERT_TRUE(launch);
        const std::string& node = launch->ticket().node();
        EXPECT_EQ(branch.address.path, "/" + node);
        EXPECT_EQ(launch->program().argv(0), std::stoi(node.substr(1)) % 2 == 0 ? "a" : "b");
        ++launched[node];
      } else {
        const auto part = wire::decode<wire::Relay>(frame.payload);
        ASSERT_TRUE(part);
        EXPECT_EQ(branch.address.path, "/" + part->nodes(0).ticket().node());
        follow(relay_branches(*part), depth + 1);
      }
    }
  }
};

TEST(Tree, EveryNodeIsLaunchedOnceAndNobodyDialsMoreThanTheWidth) {
  for (const int nodes : {1, 2, 3, 7, 16, 17, 100, 1000}) {
    for (const std::uint32_t width : {1U, 2U, 16U}) {
      if (width == 1 && nodes > 100) continue;
      Walk walk;
      walk.follow(client_branches(plan_of(nodes, width)), 0);
      EXPECT_EQ(walk.launched.size(), static_cast<std::size_t>(nodes)) << nodes << " by " << width;
      for (const auto& [node, times] : walk.launched) EXPECT_EQ(times, 1) << node;
      EXPECT_LE(walk.widest, width + 1);  // a relay's own node is on the same machine
    }
  }
}

TEST(Tree, FewNodesAreDialledByTheClientItself) {
  for (const Branch& branch : client_branches(plan_of(16, 16))) EXPECT_EQ(branch.nodes.count, 1U);
  Walk walk;
  walk.follow(client_branches(plan_of(1000, 16)), 0);
  EXPECT_EQ(walk.deepest, 2);
}

TEST(Tree, DepthGrowsAsTheLogarithm) {
  struct Row {
    std::size_t nodes, width, levels;
  };
  for (const Row& row : std::initializer_list<Row>{{0, 16, 0},
                                                   {1, 16, 1},
                                                   {16, 16, 1},
                                                   {17, 16, 2},
                                                   {256, 16, 2},
                                                   {272, 16, 2},
                                                   {273, 16, 3},
                                                   {10000, 16, 4},
                                                   {256, 8, 3},
                                                   {7, 2, 3},
                                                   {5000, 0, 1}}) {
    EXPECT_EQ(levels(row.nodes, row.width), row.levels) << row.nodes << " by " << row.width;
  }
}

}  // namespace
}  // namespace berth::launch
