// Jobs placed by berth's own policy, through the same door as all others.
#include "place/ranking.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "place/corpus_cluster_test_fixture.h"
#include "place/place.h"
#include "place/srun_test_fixture.h"

namespace berth::place {
namespace {

std::vector<cluster::Gres> gpus(int count, bool linked = false) {
  cluster::Gres gres;
  gres.name = "gpu";
  for (int i = 0; i < count; ++i) {
    cluster::Device device;
    device.type = "a100";
    device.file = fmt::format("/dev/nvidia{}", i);
    for (int other = 0; linked && other < count; ++other) {
      device.links.push_back(other == i ? -1 : other / 2 == i / 2 ? 4 : 1);  // pairs
    }
    gres.devices.push_back(std::move(device));
  }
  return {gres};
}

cluster::Cluster make(std::vector<cluster::Node> nodes) {
  cluster::Cluster c;
  c.nodes = std::move(nodes);
  c.index_nodes();
  c.settings.gres_types = {"gpu", "shard"};
  c.settings.def_mem_per_cpu_mb = 1024;
  c.settings.placement = cluster::Placement::keep_whole;
  corpus::add_partition(c, "main", {}, true);
  return c;
}

class KeepsWhole : public testing::Test {
 protected:
  explicit KeepsWhole(std::vector<cluster::Node> nodes) : cluster_(make(std::move(nodes))) {}
  KeepsWhole()
      : KeepsWhole({corpus::node("c1", 1, {}), corpus::node("g1", 1, {}, gpus(4)),
                    corpus::node("g2", 1, {}, gpus(4)), corpus::node("g3", 1, {}, gpus(4))}) {}

  /// Starts a job; "g1 0,1": its nodes and GPUs.
  std::string start(const std::string& options) {
    const JobPlan plan = place_job(cluster_, usage_, parse_srun(options));
    if (plan.verdict != Verdict::now) return "waits";
    usage_.take(plan.allocation);
    std::string out;
    for (const cluster::NodeShare& share : plan.allocation.nodes) {
      if (!out.empty()) out += " ";
      out += cluster_.nodes[share.node].name;
      if (share.gpus().any()) out += " " + share.gpus().ranges();
    }
    return out;
  }

  cluster::Cluster cluster_;
  cluster::Usage usage_{cluster_};
};

TEST_F(KeepsWhole, CpuJobsLeaveNodesWithGpusAlone) {
  EXPECT_EQ(start("-n4"), "c1");
  EXPECT_EQ(start("-n12"), "c1");
}

TEST_F(KeepsWhole, SmallJobsGatherAndLargeOnesStillFit) {
  EXPECT_EQ(start("-w g2 --gpus=1"), "g2 0");
  EXPECT_EQ(start("--gpus=1"), "g2 1");
  EXPECT_EQ(start("--gpus=1"), "g2 2");
  EXPECT_EQ(start("-N1 --gpus=4"), "g1 0-3");
  EXPECT_EQ(start("--gpus=1"), "g2 3");
  EXPECT_EQ(start("-N1 --gpus=4"), "g3 0-3");
  EXPECT_EQ(start("--gpus=1"), "waits");
}

TEST_F(KeepsWhole, SeveralNodesAreTakenInTheSameOrder) {
  EXPECT_EQ(start("-w g3 --gpus=2"), "g3 0-1");
  EXPECT_EQ(start("-w g2 --gpus=3"), "g2 0-2");
  EXPECT_EQ(start("-N2 --gpus-per-node=1"), "g2 3 g3 2");
}

TEST_F(KeepsWhole, WeightsComeFirst) {
  cluster_.nodes[*cluster_.find_node("g1")].weight = 5;
  cluster_.nodes[*cluster_.find_node("g2")].weight = 5;
  EXPECT_EQ(start("-w g2 --gpus=1"), "g2 0");
  EXPECT_EQ(start("--gpus=1"), "g3 0");
}

TEST_F(KeepsWhole, NodesThatAreNotUsableAreNotUsed) {
  cluster_.nodes[*cluster_.find_node("c1")].usable = false;
  EXPECT_EQ(start("-w g1 --gpus=4"), "g1 0-3");
  EXPECT_EQ(start("-n2"), "g1");  // its GPUs are taken anyway
}

/// What is kept from decision to decision must be what a look at all nodes gives.
TEST_F(KeepsWhole, WhatIsRememberedIsWhatIsThere) {
  for (cluster::NodeIndex i = 4; i < 24; ++i) {
    cluster_.nodes.push_back(corpus::node(fmt::format("h{}", i).c_str(), 1, {}, gpus(4)));
  }
  cluster_.index_nodes();
  cluster_.partitions.clear();
  corpus::add_partition(cluster_, "main", {}, true);
  usage_ = cluster::Usage(cluster_);
  std::minstd_rand random(7);
  std::vector<cluster::Allocation> running;
  for (int round = 0; round < 300; ++round) {
    const auto request = parse_srun(
        fmt::format("-n1 -c{} --gpus={} -N1", 1 + random() % 4, std::array{1, 2, 4}[random() % 3]));
    const JobPlan plan = place_job(cluster_, usage_, request);
    if (round % 10 == 9) {
      const cluster::Usage copy = usage_;  // another log: all of its nodes are looked at
      const JobPlan fresh = place_job(cluster_, copy, request);
      ASSERT_EQ(plan.verdict, fresh.verdict) << round;
      if (plan.verdict == Verdict::now) {
        ASSERT_EQ(plan.allocation.nodes.front().node, fresh.allocation.nodes.front().node) << round;
      }
    }
    if (plan.verdict == Verdict::now) {
      usage_.take(plan.allocation);
      running.push_back(plan.allocation);
    }
    if (plan.verdict != Verdict::now || random() % 3 == 0) {
      const std::size_t ends = random() % running.size();
      usage_.release(running[ends]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(ends));
    }
    if (round % 50 == 49) {
      cluster::Node& node = cluster_.nodes[random() % cluster_.nodes.size()];
      node.usable = !node.usable;
      usage_.refresh_room(static_cast<cluster::NodeIndex>(&node - cluster_.nodes.data()));
    }
  }
}

TEST_F(KeepsWhole, WhatWasTakenIsWhatIsTypical) {
  for (int i = 0; i < 3; ++i) start("--gpus=1 -c2");
  const auto seen = usage_.typical().demands();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].demand, (cluster::Demand{2000, 2048, 1, 0, 0}));
  EXPECT_EQ(usage_.typical().noted(), 3U);
}

class KeepsLinks : public KeepsWhole {
 protected:
  KeepsLinks() : KeepsWhole({corpus::node("g1", 1, {}, gpus(6, true))}) {}
};

TEST_F(KeepsLinks, TogetherAndLeavesPairsTogether) {
  EXPECT_EQ(start("--gpus=1"), "g1 0");
  EXPECT_EQ(start("--gpus=2"), "g1 2-3");
  EXPECT_EQ(start("--gpus=1"), "g1 1");
  EXPECT_EQ(start("--gpus=2"), "g1 4-5");
}

class KeepsShares : public KeepsWhole {
 protected:
  KeepsShares() : KeepsWhole({corpus::node("g1", 1, {}, corpus::eight_shared())}) {}
};

TEST_F(KeepsShares, GoToTheGpuWithTheLeastLeft) {
  EXPECT_EQ(start("-c1 --gres=shard:2"), "g1 0");
  EXPECT_EQ(start("-c1 --gres=shard:3"), "g1 4");
  EXPECT_EQ(start("-c1 --gres=shard:1"), "g1 4");
  EXPECT_EQ(start("-c1 --gres=shard:2"), "g1 0");
}

TEST(BinOfNode, CountsSharesAndClosedNodes) {
  const cluster::Cluster c = make({corpus::node("g1", 1, {}, corpus::eight_shared())});
  cluster::Usage usage(c);
  cluster::Allocation job;
  cluster::NodeShare share;
  share.node = 0;
  share.cores = Bits::of({0, 1});
  share.cpus = 2;
  share.memory_mb = 1024;
  job.nodes.push_back(share);
  job.nodes[0].gres = {{"gpu", {1, 0, 0, 0, 0, 0, 0, 0}}, {"shard", {0, 3, 0, 0, 0, 0, 0, 0}}};
  usage.take(job);
  const Bin bin = bin_of(c.nodes[0], usage.at(0));
  EXPECT_EQ(bin.cpu_milli, 14000U);
  EXPECT_EQ(bin.memory_mb, 65536U - 1024U);
  EXPECT_EQ(bin.whole_gpus(), 6U);
  EXPECT_EQ(bin.free_milli(), 6250U);
  EXPECT_TRUE(bin.shares_gpus);
  cluster::NodeUsage closed = usage.at(0);
  closed.closed = true;
  EXPECT_EQ(bin_of(c.nodes[0], closed).free_milli(), 0U);
  EXPECT_EQ(bin_of(c.nodes[0], closed).cpu_milli, 0U);
}

}  // namespace
}  // namespace berth::place
