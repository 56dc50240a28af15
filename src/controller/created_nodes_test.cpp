#include "controller/created_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::controller {
namespace {

Setup two_nodes() {
  Setup setup;
  conf::NodeLine nodes;
  nodes.names = {"n1", "n2"};
  nodes.cpus = conf::Located<std::uint32_t>{4, {}};
  setup.config.slurm.nodes.push_back(nodes);
  conf::PartitionLine all;
  all.name = "all";
  all.nodes = conf::Located<std::string>{"ALL", {}};
  setup.config.slurm.partitions.push_back(all);
  return setup;
}

std::vector<std::string> names(const Setup& setup) {
  std::vector<std::string> out;
  for (const cluster::Node& node : setup.cluster.nodes) out.push_back(node.name);
  return out;
}

TEST(CreatedNodes, AreNodesLikeThoseOfSlurmConf) {
  auto setup = with_nodes(two_nodes(), {{"x1", "NodeName=x1 CPUs=8 RealMemory=1000 State=CLOUD"}});
  ASSERT_TRUE(setup);
  EXPECT_THAT(names(*setup), ::testing::ElementsAre("n1", "n2", "x1"));
  EXPECT_EQ(setup->cluster.nodes[2].cpus(), 8u);
  EXPECT_EQ(setup->cluster.find_partition("all")->nodes.size(), 3u) << "Nodes=ALL";
  EXPECT_EQ(setup->node_config.created_nodes_size(), 1);
  // Told again, they are neither doubled nor kept.
  auto same = with_nodes(*setup, {{"x1", "NodeName=x1 CPUs=8"}});
  ASSERT_TRUE(same);
  EXPECT_EQ(names(*same).size(), 3u);
  auto none = with_nodes(*setup, {});
  ASSERT_TRUE(none);
  EXPECT_THAT(names(*none), ::testing::ElementsAre("n1", "n2"));
  EXPECT_EQ(none->node_config.created_nodes_size(), 0);
}

TEST(CreatedNodes, WhatDoesNotFitIsLeftOutAndNamed) {
  EXPECT_FALSE(with_nodes(two_nodes(), {{"n1", "NodeName=n1 CPUs=8"}}));
  EXPECT_FALSE(with_nodes(two_nodes(), {{"x1", "NodeName=x1 NoSuchKey=8"}}));
  std::vector<std::string> troubles;
  const auto setup = with_fitting_nodes(
      two_nodes(), {{"n1", "NodeName=n1 CPUs=8"}, {"x1", "NodeName=x1 CPUs=8"}}, troubles);
  EXPECT_THAT(names(setup), ::testing::ElementsAre("n1", "n2", "x1"));
  ASSERT_EQ(troubles.size(), 1u);
  EXPECT_THAT(troubles[0], ::testing::HasSubstr("node n1"));
}

}  // namespace
}  // namespace berth::controller
