// From topology.conf to the network: levels, addresses, joined blocks; nodes that do not fit it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "site/site.h"

namespace berth::site {
namespace {

using testing::ElementsAre;

Result<Site> read_network(const std::string& plugin, const std::string& topology) {
  return read_site(conf::MemorySource(conf::MemorySource::Files{
      {"slurm.conf", "ClusterName=c\nTopologyPlugin=topology/" + plugin +
                         "\nNodeName=n[1-8] CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n"},
      {"topology.conf", topology}}));
}

TEST(Network, ATreeHasLevelsAndAddresses) {
  const auto site =
      read_network("tree",
                   "SwitchName=top Switches=mid,leaf3\n"
                   "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\n"
                   "SwitchName=mid Switches=leaf[1-2]\nSwitchName=leaf3 Nodes=n[5-8]\n");
  ASSERT_TRUE(site) << site.error().what();
  const cluster::Topology& network = site->cluster.topology;
  std::vector<std::uint32_t> levels;
  for (const cluster::NetworkUnit& unit : network.units) levels.push_back(unit.level);
  EXPECT_THAT(levels, ElementsAre(2u, 0u, 0u, 1u, 0u));
  EXPECT_EQ(network.levels(), 3u);
  EXPECT_EQ(network.address(0, "n1"), "top.mid.leaf1.n1");
  EXPECT_EQ(network.address_pattern(0), "switch.switch.switch.node");
  EXPECT_EQ(network.address(7, "n8"), "top.leaf3.n8");
  EXPECT_EQ(network.units[0].nodes.size(), 8u);
  EXPECT_THAT(network.leaves_of({0, 1, 6}), ElementsAre(1u, 4u));
}

TEST(Network, NeighbouringBlocksAreJoined) {
  const auto site = read_network("block",
                                 "BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[3-4]\n"
                                 "BlockName=c Nodes=n[5-6]\nBlockSizes=2,4,8\n");
  ASSERT_TRUE(site) << site.error().what();
  std::vector<std::string> names;
  for (const cluster::NetworkUnit& unit : site->cluster.topology.units) names.push_back(unit.name);
  EXPECT_THAT(names, ElementsAre("a", "b", "c", "a,b", "c", "a,b,c"));
  EXPECT_EQ(site->cluster.topology.address(0, "n1"), "n1");
  EXPECT_THAT(site->warnings,
              ElementsAre("topology.conf: n[7-8] are in no block: only jobs on one node can run "
                          "there"));
}

TEST(Network, NodesMustExistAndHangOnASwitch) {
  const auto unknown = read_network("tree", "SwitchName=a Nodes=n[1-9]\n");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().messages.front().text,
            "topology.conf:1: n9 is not in slurm.conf: no NodeName line describes it");
  const auto stray = read_network("tree", "SwitchName=a Nodes=n[1-7]\n");
  ASSERT_FALSE(stray);
  EXPECT_EQ(stray.error().messages.front().text,
            "topology.conf: n8 is on no switch: add it to the Nodes= of a SwitchName line");
}

}  // namespace
}  // namespace berth::site
