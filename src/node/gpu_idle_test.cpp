// How long jobs have not used their GPUs, from looks at them.
#include "node/gpu_idle.h"

#include <gtest/gtest.h>

namespace berth::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Moment = GpuIdle::Moment;

const NodeJob kIdleJob{"n1", 7, 1};

Moment at(int second) {
  return Moment(std::chrono::hours(1)) + seconds(second);
}

/// By GPU; nullopt: it does not tell.
GpuRound round_with(const std::vector<std::optional<std::uint32_t>>& busy) {
  GpuRound out;
  for (std::uint32_t i = 0; i < busy.size(); ++i) {
    out.samples[i].gpu = i;
    out.samples[i].busy_percent = busy[i];
  }
  return out;
}

std::vector<MeteredGpu> gpus() {
  return {{0U, {}, "h100", 80000}, {1U, {}, "h100", 80000}, {2U, {}, "h100", 80000}};
}

TEST(GpuIdle, CountsSinceTheLastOneWasBusy) {
  GpuIdle idle(gpus());
  EXPECT_TRUE(idle.sees_all());
  const std::vector<Jobs::Holder> holders = {{kIdleJob, Bits::range(0, 1)}};
  EXPECT_FALSE(idle.of(kIdleJob, at(0))) << "nobody has looked yet";
  // The third GPU is of somebody else; who is on a GPU does not matter.
  GpuRound round = round_with({0, 0, 100});
  round.processes = {{0, 4711, 3000, {}}};
  for (int s = 0; s <= 10; ++s) idle.look(round, holders, at(s));
  EXPECT_EQ(idle.of(kIdleJob, at(10)), seconds(10));
  EXPECT_EQ(idle.of(kIdleJob, at(12)), seconds(10)) << "what is since the last look is not known";
  idle.look(round_with({0, 1, 0}), holders, at(11));
  EXPECT_EQ(idle.of(kIdleJob, at(11)), milliseconds(0));
  for (int s = 12; s <= 20; ++s) idle.look(round, holders, at(s));
  EXPECT_EQ(idle.of(kIdleJob, at(20)), seconds(9));
  // One that comes back begins anew.
  idle.look(round, {}, at(21));
  EXPECT_FALSE(idle.of(kIdleJob, at(21)));
  idle.look(round, holders, at(22));
  EXPECT_EQ(idle.of(kIdleJob, at(22)), seconds(0));
}

TEST(GpuIdle, WhatIsNotSeenIsNotIdle) {
  const std::vector<Jobs::Holder> holders = {{kIdleJob, Bits::range(0, 1)}};
  const GpuRound all_idle = round_with({0, 0, 0});
  GpuRound lost = all_idle;
  lost.samples.erase(1);
  lost.lost[1] = "it fell off the bus";
  for (const GpuRound& bad : {lost, round_with({0, std::nullopt, 0})}) {
    GpuIdle idle(gpus());
    for (int s = 0; s <= 10; ++s) idle.look(all_idle, holders, at(s));
    idle.look(bad, holders, at(11));
    EXPECT_FALSE(idle.of(kIdleJob, at(11)));
    idle.look(all_idle, holders, at(12));
    EXPECT_EQ(idle.of(kIdleJob, at(12)), seconds(1)) << "it may have been busy";
  }
}

TEST(GpuIdle, ALongTimeWithoutALookCountsAsBusy) {
  GpuIdle idle(gpus());
  const std::vector<Jobs::Holder> holders = {{kIdleJob, Bits::range(0, 0)}};
  for (int s = 0; s <= 10; ++s) idle.look(round_with({0}), holders, at(s));
  EXPECT_EQ(idle.of(kIdleJob, at(15)), seconds(10));
  EXPECT_FALSE(idle.of(kIdleJob, at(16)));
  idle.look(round_with({0}), holders, at(100));
  EXPECT_EQ(idle.of(kIdleJob, at(100)), seconds(0));
}

TEST(GpuIdle, PartsAndWhatNobodyWatchesAreNotSeen) {
  const std::vector<std::vector<MeteredGpu>> blind = {
      {{0U, {}, "h100", 80000}, {std::nullopt, {}, "mi300", 192000}},
      {{0U, {}, "h100", 80000}, {1U, 3U, "h100_1g.10gb", 10000}},
  };
  for (const std::vector<MeteredGpu>& some : blind) {
    GpuIdle idle(some);
    EXPECT_FALSE(idle.sees_all());
    const NodeJob whole{"n1", 8, 1};
    const std::vector<Jobs::Holder> holders = {{kIdleJob, Bits::range(0, 1)},
                                               {whole, Bits::range(0, 0)}};
    for (int s = 0; s <= 10; ++s) idle.look(round_with({0, 0}), holders, at(s));
    EXPECT_FALSE(idle.of(kIdleJob, at(10)));
    EXPECT_EQ(idle.of(whole, at(10)), seconds(10));
  }
}

}  // namespace
}  // namespace berth::node
