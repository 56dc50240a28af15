// The policy on its own: bins, fragments and the choice between nodes.
#include "place/keep_whole.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace berth::place {
namespace {

using cluster::WeightedDemand;

Bin node(std::uint64_t cpus, std::vector<std::uint16_t> gpus, std::uint64_t model = 0) {
  Bin bin;
  bin.cpu_milli = cpus * 1000;
  bin.memory_mb = cpus * 4096;
  bin.model = model;
  bin.shares_gpus = !gpus.empty();
  bin.gpus.assign(gpus.size());
  std::ranges::sort(gpus);
  std::ranges::copy(gpus, bin.gpus.begin());
  return bin;
}

Demand job(std::uint64_t cpus, std::uint32_t gpus, std::uint32_t share = 0,
           std::uint64_t models = 0) {
  return {cpus * 1000, cpus * 2048, gpus, share, models};
}

const std::vector<WeightedDemand> kMix = {{job(8, 0), 2},      {job(12, 1), 10}, {job(4, 1), 4},
                                          {job(4, 0, 500), 4}, {job(24, 2), 1},  {job(88, 8), 1}};

/// The position of the node a job goes to, all nodes counted as the cluster.
std::optional<std::size_t> choose(KeepWhole& policy, const std::vector<Bin>& nodes,
                                  const Demand& wanted) {
  KeepWhole::Supply supply;
  for (const Bin& bin : nodes) policy.add(supply, policy.bin(bin));
  const auto prices = policy.prices(supply);
  std::optional<std::size_t> best;
  KeepWhole::Rank best_rank;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto rank = policy.rank(policy.bin(nodes[i]), policy.demand(wanted), prices);
    if (!rank || (best && *rank >= best_rank)) continue;
    best = i;
    best_rank = *rank;
  }
  return best;
}

TEST(Bin, TakesAndCounts) {
  Bin bin = node(16, {1000, 1000, 300, 0});
  EXPECT_EQ(bin.free_milli(), 2300U);
  EXPECT_EQ(bin.whole_gpus(), 2U);
  EXPECT_TRUE(fits(bin, job(4, 2)));
  EXPECT_FALSE(fits(bin, job(4, 3)));
  EXPECT_FALSE(fits(bin, job(17, 0)));
  EXPECT_EQ(copies(bin, job(4, 0, 300)), 4U);  // 7 by the GPUs, 4 by the CPUs
  take(bin, job(1, 0, 250));                   // the shared one, not a whole one
  EXPECT_EQ(bin, (Bin{15000, 65536 - 2048, 0, true, node(1, {1000, 1000, 50, 0}).gpus}));
  take(bin, job(1, 0, 500));
  EXPECT_EQ(bin.whole_gpus(), 1U);
  take(bin, job(1, 1));
  EXPECT_EQ(bin.free_milli(), 550U);
}

TEST(Bin, ModelsAreKeptApart) {
  EXPECT_TRUE(fits(node(8, {1000}, 2), job(1, 1, 0, 2 | 4)));
  EXPECT_FALSE(fits(node(8, {1000}, 2), job(1, 1, 0, 4)));
  EXPECT_FALSE(fits(node(8, {1000}), job(1, 1, 0, 4)));
  EXPECT_TRUE(fits(node(8, {1000}), job(1, 1)));
}

TEST(Fragments, WhatTheNextJobCannotUse) {
  const Fragments only_large({{job(8, 8), 1}});
  EXPECT_EQ(only_large.lost_to_next(node(96, std::vector<std::uint16_t>(8, 1000))), 0);
  EXPECT_EQ(only_large.lost_to_next(node(96, std::vector<std::uint16_t>(7, 1000))), 7000);
  const Fragments half({{job(1, 1), 1}, {job(1, 0, 500), 1}});
  EXPECT_EQ(half.lost_to_next(node(8, {1000, 600, 400})), (1000.0 + 400.0) / 2);
}

TEST(Fragments, WhatStaysFreeInTheEndSeesTheCpusRunOut) {
  const Fragments mix({{job(10, 1), 1}});
  EXPECT_EQ(mix.lost_in_the_end(node(40, std::vector<std::uint16_t>(4, 1000))), 0);
  EXPECT_EQ(mix.lost_in_the_end(node(29, std::vector<std::uint16_t>(4, 1000))), 2000);
  EXPECT_EQ(mix.lost_to_next(node(29, std::vector<std::uint16_t>(4, 1000))), 0);
}

TEST(KeepWhole, SmallJobsGoWhereGpusAreBrokenAlready) {
  KeepWhole policy(kMix);
  const Bin whole = node(96, std::vector<std::uint16_t>(8, 1000));
  const Bin broken = node(72, {1000, 1000, 1000, 1000, 1000, 1000});
  EXPECT_EQ(choose(policy, {whole, broken}, job(12, 1)), 1U);
  EXPECT_EQ(choose(policy, {whole, broken}, job(88, 8)), 0U);
  const Bin shared = node(72, {500, 1000, 1000, 1000, 1000, 1000});
  EXPECT_EQ(choose(policy, {whole, broken, shared}, job(4, 0, 500)), 2U);
}

TEST(KeepWhole, CpuJobsLeaveGpusTheirCpus) {
  KeepWhole policy(kMix);
  const Bin gpus = node(96, std::vector<std::uint16_t>(8, 1000));
  const Bin rich = node(104, {1000, 1000});
  const Bin none = node(128, {});
  EXPECT_EQ(choose(policy, {gpus, rich, none}, job(8, 0)), 2U);
  EXPECT_EQ(choose(policy, {gpus, rich}, job(8, 0)), 1U);
  // A node whose GPUs are all taken costs nothing either, and is filled up first.
  const Bin full = node(40, {0, 0});
  EXPECT_EQ(choose(policy, {gpus, none, full}, job(8, 0)), 2U);
}

TEST(KeepWhole, NamedModelsAreSparedWhenScarce) {
  KeepWhole policy({{job(4, 1), 5}, {job(4, 1, 0, 2), 5}});
  const Bin wanted = node(16, {1000, 1000}, 2);
  const Bin other = node(16, {1000, 1000}, 1);
  EXPECT_EQ(choose(policy, {wanted, other}, job(4, 1)), 1U);
  EXPECT_EQ(choose(policy, {other, wanted}, job(4, 1, 0, 2)), 1U);
}

TEST(KeepWhole, AnEightGpuJobStillFitsAfterManySmallOnes) {
  KeepWhole policy(kMix);
  std::vector<Bin> nodes(4, node(96, std::vector<std::uint16_t>(8, 1000)));
  for (int i = 0; i < 20; ++i) {  // 20 of 32 GPUs in jobs of one
    const auto at = choose(policy, nodes, job(4, 1));
    ASSERT_TRUE(at);
    take(nodes[*at], job(4, 1));
  }
  EXPECT_TRUE(choose(policy, nodes, job(88, 8)));
}

TEST(KeepWhole, NothingIsChosenThatDoesNotFitAndNothingThatFitsIsRefused) {
  std::mt19937 random(7);
  const auto up_to = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(random() % (most + 1));
  };
  KeepWhole policy(kMix);
  std::size_t placed = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<Bin> nodes;
    for (int n = 0; n < 4; ++n) {
      std::vector<std::uint16_t> gpus(up_to(8));
      for (auto& gpu : gpus) gpu = static_cast<std::uint16_t>(up_to(2) == 0 ? up_to(1000) : 1000);
      nodes.push_back(node(up_to(96), gpus));
    }
    const Demand wanted = up_to(1) == 0 ? job(up_to(40), up_to(8)) : job(up_to(40), 0, up_to(999));
    const auto at = choose(policy, nodes, wanted);
    const bool any = std::ranges::any_of(nodes, [&](const Bin& b) { return fits(b, wanted); });
    ASSERT_EQ(at.has_value(), any);
    if (!at) continue;
    ++placed;
    ASSERT_TRUE(fits(nodes[*at], wanted));
    const std::uint32_t before = nodes[*at].free_milli();
    take(nodes[*at], wanted);
    ASSERT_EQ(before - nodes[*at].free_milli(), wanted.gpu_milli());
    ASSERT_TRUE(std::ranges::is_sorted(nodes[*at].gpus));
  }
  EXPECT_GT(placed, 100U);
}

TEST(KeepWhole, WithoutAnythingTypicalItIsBestFit) {
  KeepWhole policy({});
  EXPECT_EQ(choose(policy, {node(64, {1000}), node(32, {1000})}, job(4, 1)), 1U);
}

TEST(KeepWhole, LearningChangesTheChoice) {
  KeepWhole policy({{job(2, 1), 1}});
  const std::vector<Bin> nodes = {node(12, {1000, 1000}), node(10, {1000})};
  EXPECT_EQ(choose(policy, nodes, job(4, 1)), 1U);  // nothing is lost on either: best fit
  // Of the first node's GPUs only one can be used by jobs of 8 CPUs: this job takes the other.
  policy.learn({{job(8, 1), 1}});
  EXPECT_EQ(choose(policy, nodes, job(4, 1)), 0U);
}

}  // namespace
}  // namespace berth::place
