// Where jobs go when the network counts: table by table, on small trees and blocks.
#include "place/network.h"

#include <gtest/gtest.h>

#include <sstream>

#include "place/network_test_fixture.h"
#include "place/network_words.h"
#include "place/place.h"
#include "request/parse.h"
#include "text/hostlist.h"

namespace berth::place {
namespace {

using corpus::blocks;
using corpus::tree;

class NetworkPlacement {
 public:
  explicit NetworkPlacement(cluster::Cluster cluster)
      : cluster_(std::move(cluster)), usage_(cluster_) {}

  JobPlan plan(const std::string& options) {
    std::istringstream in(options);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    words.emplace_back("job.sh");
    auto parsed = request::parse(request::Command::sbatch, words, "#!/bin/sh\n", {});
    EXPECT_TRUE(parsed) << options;
    requests_.push_back(parsed->components.front());
    return place_job(cluster_, usage_, requests_.back());
  }
  /// Nodes and switches: "n[1-2]: one switch (leaf1)".
  std::string shown(const JobPlan& plan) const {
    if (plan.verdict == Verdict::never) return "never: " + plan.error.hint;
    if (plan.verdict != Verdict::now) return "later: " + plan.reasons.nearest_miss;
    std::vector<std::string> names;
    for (const cluster::NodeShare& share : plan.allocation.nodes) {
      names.push_back(cluster_.nodes[share.node].name);
    }
    return text::compress_hostlist(names) + ": " + leaf_words(cluster_, plan.allocation);
  }
  std::string place(const std::string& options) { return shown(plan(options)); }
  void take(const std::string& options) {
    const JobPlan taken = plan(options);
    ASSERT_EQ(taken.verdict, Verdict::now) << options;
    usage_.take(taken.allocation);
  }
  cluster::Cluster& cluster() { return cluster_; }

 private:
  cluster::Cluster cluster_;
  cluster::Usage usage_;
  std::vector<request::Request> requests_;
};

TEST(NetworkPlacement, TheLowestSwitchThatFits) {
  NetworkPlacement p(tree({3, 4, 4, 2}));                     // n1-3, n4-7 | n8-11, n12-13
  EXPECT_EQ(p.place("-N2"), "n[12-13]: one switch (leaf4)");  // the smallest leaf that holds it
  EXPECT_EQ(p.place("-N3"), "n[1-3]: one switch (leaf1)");
  EXPECT_EQ(p.place("-N4"), "n[4-7]: one switch (leaf2)");
  EXPECT_EQ(p.place("-N6"), "n[8-13]: 2 switches (leaf[3-4])");  // the pair with least to spare
  EXPECT_EQ(p.place("-N7"), "n[1-7]: 2 switches (leaf[1-2])");
  EXPECT_EQ(p.place("-N8"), "n[4-11]: 2 switches (leaf[2-3])");  // below the core, fewest leaves
  EXPECT_EQ(p.place("-N13"), "n[1-13]: 4 switches (leaf[1-4])");
  EXPECT_EQ(p.place("-n40 -c1"), "n[1-3]: one switch (leaf1)");  // 40 of 48 CPUs
  EXPECT_EQ(p.place("--gpus=6 -N2"), "n[12-13]: one switch (leaf4)");
  EXPECT_EQ(p.place("--gpus=12"), "n[1-3]: one switch (leaf1)");
  EXPECT_EQ(p.place("-N2-4"), "n[4-7]: one switch (leaf2)");  // as many as wished
  EXPECT_EQ(p.place("-N1"), "n12: one switch (leaf4)");
}

TEST(NetworkPlacement, WhatIsTakenCounts) {
  NetworkPlacement p(tree({4, 4}));
  p.take("-N1 --exclusive");
  EXPECT_EQ(p.place("-N3 --exclusive"), "n[2-4]: one switch (leaf1)");  // fills what was begun
  EXPECT_EQ(p.place("-N4 --exclusive"), "n[5-8]: one switch (leaf2)");
  // What is left over of five nodes is left on one leaf.
  EXPECT_EQ(p.place("-N5 --exclusive"), "n[2,5-8]: 2 switches (leaf[1-2])");
  EXPECT_EQ(p.place("-N1 --exclusive"), "n2: one switch (leaf1)");
}

TEST(NetworkPlacement, KeepsGpusWholeToo) {
  NetworkPlacement p(tree({4, 4, 2}));
  p.cluster().settings.placement = cluster::Placement::keep_whole;
  EXPECT_EQ(p.place("-N4 --gpus-per-node=4"), "n[1-4]: one switch (leaf1)");
  EXPECT_EQ(p.place("-N2 --gpus-per-node=4"), "n[9-10]: one switch (leaf3)");
  EXPECT_EQ(p.place("-n1 --gpus=1"), "n9: one switch (leaf3)");
  p.take("-w n6 -n1 --gpus=3 --mem=1G");
  EXPECT_EQ(p.place("-n1 --gpus=1 --mem=1G"), "n6: one switch (leaf2)");  // the rest of that node
}

TEST(NetworkPlacement, NodesThatAreNamedAndWeighed) {
  NetworkPlacement p(tree({3, 4, 4, 2}));
  EXPECT_EQ(p.place("-N2 -w n5"), "n[5-6]: one switch (leaf2)");
  EXPECT_EQ(p.place("-N2 -w n1,n13"), "n[1,13]: 2 switches (leaf[1,4])");
  EXPECT_EQ(p.place("-N4 -w n1,n4"), "n[1-4]: 2 switches (leaf[1-2])");
  EXPECT_EQ(p.place("-N2 -x n13"), "n[1-2]: one switch (leaf1)");
  for (cluster::NodeIndex i : {11U, 12U}) p.cluster().nodes[i].weight = 9;
  EXPECT_EQ(p.place("-N2"), "n[1-2]: one switch (leaf1)");  // light nodes before near ones
  EXPECT_EQ(p.place("-N12"), "n[1-12]: 4 switches (leaf[1-4])");
  EXPECT_EQ(p.place("-N2 -w n13"), "n[8,13]: 2 switches (leaf[3-4])");
}

TEST(NetworkPlacement, SwitchesThatAreNotConnected) {
  cluster::Cluster c = tree({4, 4, 4, 4});
  c.topology.units.pop_back();  // no core: two trees
  for (cluster::NetworkUnit& unit : c.topology.units) {
    unit.leaves.clear();
    if (unit.level == 0) continue;
    unit.parent.reset();
    unit.nodes.clear();
  }
  c.topology.finish(c.nodes.size());
  NetworkPlacement p(std::move(c));
  EXPECT_EQ(p.place("-N8"), "n[1-8]: 2 switches (leaf[1-2])");
  EXPECT_EQ(p.place("-N9"),
            "never: its nodes must hang on one tree of switches (scontrol show topology)");
}

TEST(NetworkPlacement, FewSwitchesAreWaitedFor) {
  NetworkPlacement p(tree({4, 4}));
  EXPECT_EQ(p.place("-N4 --switches=1"), "n[1-4]: one switch (leaf1)");
  p.take("-w n1 --exclusive");
  p.take("-w n5 --exclusive");
  EXPECT_EQ(p.place("-N4 --exclusive --switches=1"),
            "later: what is free is on 2 switches (leaf[1-2]); --switches=1 waits for one");
  EXPECT_EQ(p.place("-N4 --exclusive --switches=2"), "n[2-4,6]: 2 switches (leaf[1-2])");
  EXPECT_EQ(p.place("-N5 --exclusive --switches=1"),
            "later: what is free is on 2 switches (leaf[1-2]); --switches=1 waits for one");
  EXPECT_EQ(p.place("-N2-4 --exclusive --switches=1"), "n[2-4]: one switch (leaf1)");
}

TEST(NetworkPlacement, OnlyWhenAsked) {
  NetworkPlacement p(tree({2, 4}));
  p.take("-w n1 --exclusive");
  p.cluster().topology.only_when_asked = true;
  EXPECT_EQ(p.place("-N2 --exclusive"), "n[2-3]: 2 switches (leaf[1-2])");
  EXPECT_EQ(p.place("-N2 --exclusive --switches=1"), "n[3-4]: one switch (leaf2)");
  EXPECT_EQ(p.place("-n3 --spread-job"), "n[2-4]: 2 switches (leaf[1-2])");
}

TEST(NetworkPlacement, BlocksStayTogether) {
  NetworkPlacement p(blocks(4, 4, {4, 8}));  // n1-4, n5-8 | n9-12, n13-16
  EXPECT_EQ(p.place("-N4"), "n[1-4]: one block (b1)");
  EXPECT_EQ(p.place("-N5"), "n[1-5]: 2 blocks (b[1-2])");
  EXPECT_EQ(p.place("-N12"), "n[1-12]: 3 blocks (b[1-3])");
  p.take("-w n1 --exclusive");
  p.take("-w n9 --exclusive");
  EXPECT_EQ(p.place("-N3 --exclusive"), "n[2-4]: one block (b1)");  // what was begun is filled
  EXPECT_EQ(p.place("-N8 --exclusive").substr(0, 6), "later:");     // no pair of blocks is free
  EXPECT_EQ(p.place("-N9 --exclusive"), "n[2,5-8,13-16]: 3 blocks (b[1-2,4])");
  p.take("-w n5 --exclusive");
  p.take("-w n13 --exclusive");
  EXPECT_EQ(p.place("-N4 --exclusive").substr(0, 6), "later:");  // 12 nodes are free, no block
  EXPECT_EQ(p.place("-N4 --exclusive --segment=2"), "n[2-3,6-7]: 2 blocks (b[1-2])");
}

TEST(NetworkPlacement, SegmentsAreWithinBlocks) {
  NetworkPlacement p(blocks(3, 4, {4}));  // n1-4, n5-8, n9-12
  EXPECT_EQ(p.place("-N6 --segment=3"), "n[1-3,5-7]: 2 blocks (b[1-2])");
  EXPECT_EQ(p.place("-N6 --segment=2"), "n[1-6]: 2 blocks (b[1-2])");
  EXPECT_EQ(p.place("-N2 --segment=4"), "n[1-2]: one block (b1)");
  EXPECT_EQ(p.place("-N3 --segment=1 --spread-segments"), "n[1,5,9]: 3 blocks (b[1-3])");
  EXPECT_EQ(p.place("-N2-5 --segment=2"), "n[1-4]: one block (b1)");
  EXPECT_EQ(p.place("-N6 --segment=3 -w n12"), "n[1-3,9-10,12]: 2 blocks (b[1,3])");
  EXPECT_EQ(p.place("-N10 --segment=5"),
            "never: --segment=5 needs blocks with as many nodes that could take the job");
  EXPECT_EQ(p.place("-N12 --segment=3"),
            "never: --segment=3 needs blocks with as many nodes that could take the job");
}

TEST(NetworkPlacement, WhatCannotBe) {
  NetworkPlacement p(blocks(2, 4, {4}));
  EXPECT_EQ(p.place("-N2 -w n1,n8"),
            "never: a job of up to 4 nodes stays within one block; --segment=n lets it be in "
            "several, n nodes in each");
  EXPECT_EQ(p.place("-N2 --exclusive=topo").substr(0, 6), "never:");
}

}  // namespace
}  // namespace berth::place
