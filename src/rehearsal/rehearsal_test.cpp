// Rehearsals of many seeds. BERTH_REHEARSAL_SEED=N plays one and prints its schedule;
// BERTH_REHEARSAL_SEEDS and BERTH_REHEARSAL_FIRST say how many and from which on, BERTH_SOAK=1
// takes 100,000.
#include "rehearsal/rehearsal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

namespace berth::rehearsal {
namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

class RehearsalTest : public testing::Test {
 protected:
  void SetUp() override {
    auto site = Site::open(slurm_conf());
    ASSERT_TRUE(site) << site.error().what();
    site_ = std::move(*site);
  }
  std::unique_ptr<Site> site_;
};

TEST_F(RehearsalTest, NothingIsLostDoubledOrInTwoPlaces) {
  if (const std::uint64_t seed = number("BERTH_REHEARSAL_SEED", 0); seed != 0) {
    const Outcome outcome = rehearse(*site_, seed, true);
    fmt::print("{}\n", outcome.counts.text());
    EXPECT_FALSE(outcome.fault) << *outcome.fault;
    return;
  }
  const std::uint64_t seeds =
      number("BERTH_REHEARSAL_SEEDS", std::getenv("BERTH_SOAK") != nullptr ? 100'000 : 2'000);
  const std::uint64_t first = number("BERTH_REHEARSAL_FIRST", 1);
  Counts all;
  std::uint64_t broken = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed < first + seeds && broken < 10; ++seed) {
    const Outcome outcome = rehearse(*site_, seed);
    all.add(outcome.counts);
    if (!outcome.fault) continue;
    ++broken;
    ADD_FAILURE() << "seed " << seed << ": " << *outcome.fault << "\nBERTH_REHEARSAL_SEED=" << seed
                  << " prints its schedule";
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{} seeds in {:.1f} s: {}\n", seeds, took.count(), all.text());
}

TEST_F(RehearsalTest, ASeedGivesTheSameScheduleEachTime) {
  std::uint64_t before = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = rehearse(*site_, seed);
    EXPECT_EQ(first.digest, rehearse(*site_, seed).digest) << seed;
    EXPECT_NE(first.digest, std::exchange(before, first.digest)) << seed;
  }
}

}  // namespace
}  // namespace berth::rehearsal
