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

TEST(CreatedNodes, AMachineThatJoinsSaysWhatItHas) {
  wire::Hardware hardware;
  hardware.set_sockets(2);
  hardware.set_cores_per_socket(8);
  hardware.set_threads_per_core(1);
  hardware.set_memory_mb(1000);
  wire::GresFound& gpus = *hardware.add_gres();
  gpus.set_name("gpu");
  gpus.set_type("a100");
  gpus.set_count(4);
  const auto node = node_of_machine("x1", hardware);
  ASSERT_TRUE(node);
  EXPECT_EQ(node->line,
            "NodeName=x1 Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=1000 "
            "Gres=gpu:a100:4");
  for (const char* name : {"", "a b", "x1,DNS:ctl", "x[1-2]", "-x", "x\n"}) {
    EXPECT_FALSE(node_of_machine(name, hardware)) << name;
  }
  gpus.set_type("a100 State=DOWN");
  EXPECT_FALSE(node_of_machine("x1", hardware));
  hardware.clear_gres();
  hardware.set_sockets(0);
  EXPECT_FALSE(node_of_machine("x1", hardware));
  hardware.set_sockets(1U << 31);
  EXPECT_FALSE(node_of_machine("x1", hardware));
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
