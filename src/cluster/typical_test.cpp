#include "cluster/typical.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace berth::cluster {
namespace {

Demand gpus(std::uint32_t count, std::uint64_t cpu = 1000) {
  return {cpu, 1024, count, 0, 0};
}

TEST(Typical, CountsEqualRequestsTogether) {
  Typical typical;
  for (int i = 0; i < 3; ++i) typical.note(gpus(1));
  typical.note(gpus(8));
  const auto all = typical.demands();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].demand, gpus(1));
  EXPECT_NEAR(all[0].weight / all[1].weight, 3, 0.01);
  EXPECT_EQ(typical.noted(), 4U);
}

TEST(Typical, OldRequestsFade) {
  Typical typical(10);
  for (int i = 0; i < 1000; ++i) typical.note(gpus(1));
  for (int i = 0; i < 50; ++i) typical.note(gpus(2));
  const auto all = typical.demands();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_LT(all[0].weight, all[1].weight / 50);
  EXPECT_LT(all[1].weight, 11);  // the horizon bounds what counts
}

TEST(Typical, KeepsTheFrequentAmongManyRareOnes) {
  Typical typical;
  for (std::uint64_t cpu = 1; cpu <= 5000; ++cpu) {
    typical.note(gpus(1, cpu));
    typical.note(gpus(4));
  }
  const auto all = typical.demands();
  EXPECT_LE(all.size(), 512U);
  const auto frequent = std::ranges::max_element(all, {}, &WeightedDemand::weight);
  EXPECT_EQ(frequent->demand, gpus(4));
}

TEST(Typical, LongLivesDoNotOverflow) {
  Typical typical(2);
  for (int i = 0; i < 10000; ++i) typical.note(gpus(1));
  EXPECT_NEAR(typical.demands().front().weight, 2, 0.01);
}

}  // namespace
}  // namespace berth::cluster
