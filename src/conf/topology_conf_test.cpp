// topology.conf and topology.yaml: what they give, and what is wrong with them, by line.
#include "conf/topology_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::conf {
namespace {

using testing::ElementsAre;

struct NetworkRead {
  std::optional<TopologyConf> conf;
  std::vector<std::string> errors;
};

NetworkRead read_network(NetworkPlugin plugin, MemorySource::Files files) {
  Complaints complaints;
  NetworkRead got;
  got.conf =
      read_topology(MemorySource(std::move(files)), plugin, {"slurm.conf", 7}, "c", complaints);
  if (complaints.failed()) {
    for (const Message& message : complaints.as_error().messages) {
      got.errors.push_back(message.text);
    }
  }
  return got;
}

TEST(TopologyConf, ATreeIsRead) {
  const NetworkRead got =
      read_network(NetworkPlugin::tree, {{"topology.conf",
                                          "# the racks\n"
                                          "SwitchName=leaf1 Nodes=n[1-2]\n"
                                          "switchname=leaf2 nodes=n3,n4 LinkSpeed=100\n"
                                          "SwitchName=core Switches=leaf[1-2]\n"
                                          "BlockName=other Nodes=n1\n"}});
  EXPECT_THAT(got.errors, ElementsAre());
  ASSERT_EQ(got.conf->switches.size(), 3u);
  EXPECT_THAT(got.conf->switches[0].nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(got.conf->switches[1].link_speed, 100u);
  EXPECT_THAT(got.conf->switches[2].switches, ElementsAre("leaf1", "leaf2"));
}

TEST(TopologyConf, BlocksHaveSizes) {
  const NetworkRead given = read_network(NetworkPlugin::block, {{"topology.conf",
                                                                 "BlockName=b1 Nodes=n[1-4]\n"
                                                                 "BlockName=b2 Nodes=n[5-9]\n"
                                                                 "BlockSizes=8,4\n"}});
  EXPECT_THAT(given.errors, ElementsAre());
  EXPECT_THAT(given.conf->block_sizes, ElementsAre(4u, 8u));
  const NetworkRead smallest =
      read_network(NetworkPlugin::block,
                   {{"topology.conf", "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-9]\n"}});
  EXPECT_THAT(smallest.conf->block_sizes, ElementsAre(4u));
}

TEST(TopologyConf, ComplaintsNameTheLine) {
  struct Row {
    NetworkPlugin plugin;
    const char* text;
    const char* error;
  };
  const auto tree = NetworkPlugin::tree;
  const auto block = NetworkPlugin::block;
  const Row rows[] = {
      {tree, "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-3]\n",
       "topology.conf:2: node n2 is on two switches: b and a (topology.conf:1)"},
      {tree, "SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
       "topology.conf:1: switch a is below itself: the switches form a circle"},
      {tree, "SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=c Switches=a\n",
       "topology.conf:3: switch a is below two switches: c and b"},
      {tree, "SwitchName=a Switches=x\n",
       "topology.conf:1: switch a has the child x, which no line describes"},
      {tree, "SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n",
       "topology.conf:2: switch a is described twice, first in topology.conf:1"},
      {tree, "SwitchName=a\n", "topology.conf:1: switch a needs Nodes= or Switches=, one of them"},
      {tree, "Nodes=n1\n", "topology.conf:1: the line has no SwitchName= and no BlockName="},
      {tree, "BlockName=b Nodes=n1\n",
       "topology.conf: a tree needs switches, and none is described"},
      {tree, "SwitchNam=a Nodes=n1\n",
       "topology.conf:1: SwitchNam is not a key of topology.conf; did you mean SwitchName?"},
      {tree, "SwitchName=a Nodes=n[1-\n", nullptr},
      {block, "BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[2-3]\n",
       "topology.conf:2: node n2 is in two blocks: b and a (topology.conf:1)"},
      {block, "BlockName=a Nodes=n[1-2]\nBlockSizes=4\n",
       "topology.conf:1: block a has 2 nodes, BlockSizes wants 4 at least"},
      {block, "BlockName=a Nodes=n[1-2]\nBlockSizes=2,6\n",
       "topology.conf: BlockSizes has 6, which is not 2 times a power of two"},
      {block, "BlockName=a Nodes=n1\nBlockSizes=x\n", nullptr},
  };
  for (const Row& row : rows) {
    const NetworkRead got = read_network(row.plugin, {{"topology.conf", row.text}});
    if (row.error != nullptr) {
      EXPECT_THAT(got.errors, ElementsAre(row.error)) << row.text;
    } else {
      EXPECT_EQ(got.errors.size(), 1u) << row.text;
    }
  }
  EXPECT_THAT(read_network(tree, {}).errors,
              ElementsAre("slurm.conf:7: TopologyPlugin=topology/tree needs topology.conf beside "
                          "slurm.conf, and there is none"));
}

TEST(TopologyConf, AFlatNetworkNeedsNoFile) {
  const NetworkRead got =
      read_network(NetworkPlugin::flat, {{"topology.conf", "SwitchName=a Nodes=n1\n"}});
  EXPECT_FALSE(got.conf);
  EXPECT_THAT(got.errors, ElementsAre());
}

TEST(TopologyYaml, GoesBeforeTopologyConf) {
  const NetworkRead got =
      read_network(NetworkPlugin::flat, {{"topology.conf", "nonsense\n"}, {"topology.yaml", R"(
- topology: spare
  flat: true
- topology: main
  cluster_default: true
  tree:
    switches:
      - switch: core   # the top
        children: leaf[1-2]
      - {switch: leaf1, nodes: "n[1-2]"}
      - switch: leaf2
        nodes: n[3-4]
)"}});
  EXPECT_THAT(got.errors, ElementsAre());
  EXPECT_EQ(got.conf->name, "main");
  EXPECT_EQ(got.conf->plugin, NetworkPlugin::tree);
  ASSERT_EQ(got.conf->switches.size(), 3u);
  EXPECT_THAT(got.conf->switches[0].switches, ElementsAre("leaf1", "leaf2"));
  EXPECT_THAT(got.conf->switches[1].nodes, ElementsAre("n1", "n2"));
}

TEST(TopologyYaml, BlocksAndComplaints) {
  const NetworkRead blocks = read_network(NetworkPlugin::tree, {{"topology.yaml", R"(
- topology: main
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b1, nodes: "n[1-2]"}
      - {block: b2, nodes: "n[3-4]"}
)"}});
  EXPECT_THAT(blocks.errors, ElementsAre());
  EXPECT_THAT(blocks.conf->block_sizes, ElementsAre(2u, 4u));
  EXPECT_EQ(blocks.conf->blocks.size(), 2u);
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"- topology: a\n  tree: {switches: [{switch: s, nodes: n1}, {switch: t, nodes: n1}]}\n",
       "topology.yaml:2: node n1 is on two switches: t and s (topology.yaml:2)"},
      {"- topology: a\n  ring: {}\n",
       "topology.yaml:2: ring is not supported by berth; allowed are tree, block, flat"},
      {"- topology: a\n  tree:\n    swtches: []\n",
       "topology.yaml:3: swtches is not known here; allowed are switches"},
      {"- topology: a\n- topology: b\n",
       "topology.yaml: no network has cluster_default: true, so it is not said which one to use"},
      {"a: [\n", nullptr},
      {"",
       "topology.yaml: the file must be a list of networks, each with topology: NAME and one of "
       "tree:, block:, flat:"},
  };
  for (const Row& row : rows) {
    const NetworkRead got = read_network(NetworkPlugin::tree, {{"topology.yaml", row.text}});
    if (row.error != nullptr) {
      EXPECT_THAT(got.errors, testing::Contains(row.error)) << row.text;
    } else {
      EXPECT_FALSE(got.errors.empty()) << row.text;
    }
  }
}

}  // namespace
}  // namespace berth::conf
