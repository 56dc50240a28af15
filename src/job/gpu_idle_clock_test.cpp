// When a job that does not use its GPUs is warned and ended.
#include "job/gpu_idle_clock.h"

#include <gtest/gtest.h>

namespace berth::job {
namespace {

using Do = GpuIdleClock::Do;
using Seconds = GpuIdleClock::Seconds;

/// The job began then; times below count from there.
constexpr Seconds kBegan = 1000000;

/// One node; it is asked when the clock wants to know.
class Watched {
 public:
  explicit Watched(Seconds limit) : limit_(limit) { clock.start(kBegan); }

  /// What is done when the nodes are asked next; `now` is then.
  Do next() {
    now = clock.next_look(limit_) - kBegan;
    return ask();
  }
  Do ask() {
    clock.asked.emplace(1, "n1");
    EXPECT_EQ(clock.next_look(limit_), 0) << "the question is under way";
    std::optional<Seconds> idle;
    if (seen) idle = now - busy_until;
    EXPECT_TRUE(clock.told(1, "n1", idle, kBegan + now));
    return clock.decide(limit_, kBegan + now);
  }
  void limit(Seconds limit) { limit_ = limit; }
  [[nodiscard]] Seconds left() const { return clock.left(limit_, kBegan + now); }

  GpuIdleClock clock;
  Seconds now = 0;
  Seconds busy_until = 0;
  bool seen = true;

 private:
  Seconds limit_;
};

TEST(GpuIdleClock, WarnsAtHalfAndShortlyBeforeAndThenEnds) {
  struct Row {
    Seconds limit, first, second, end;
  };
  const Row rows[] = {
      {1800, 900, 1740, 1800},
      {7200, 3600, 7140, 7200},
      {100, 50, 90, 100},
      {10, 5, 9, 10},
      {4, 2, 3, 4},
      {2, 1, 1, 2},
  };
  for (const Row& row : rows) {
    Watched job(row.limit);
    EXPECT_EQ(job.next(), Do::warn) << row.limit;
    EXPECT_EQ(job.now, row.first) << row.limit;
    EXPECT_EQ(job.left(), row.limit - row.first) << row.limit;
    Do then = job.next();
    if (row.first < row.second) {
      EXPECT_EQ(then, Do::warn) << row.limit;
      EXPECT_EQ(job.now, row.second) << row.limit;
      then = job.next();
    }
    EXPECT_EQ(then, Do::end) << row.limit;
    EXPECT_EQ(job.now, row.end) << row.limit;
  }
}

TEST(GpuIdleClock, BeginsAnewWhenItWasBusy) {
  Watched job(100);
  EXPECT_EQ(job.next(), Do::warn);
  job.busy_until = 70;
  EXPECT_EQ(job.next(), Do::wait);
  EXPECT_EQ(job.now, 90);
  EXPECT_EQ(job.next(), Do::warn);
  EXPECT_EQ(job.now, 120);
  EXPECT_EQ(job.next(), Do::warn);
  EXPECT_EQ(job.now, 160);
  EXPECT_EQ(job.next(), Do::end);
  EXPECT_EQ(job.now, 170);
}

TEST(GpuIdleClock, WhatCannotBeSeenIsNotIdle) {
  Watched job(100);
  job.seen = false;
  for (int i = 1; i < 50; ++i) {
    EXPECT_EQ(job.next(), Do::wait);
    EXPECT_EQ(job.now, 50 * i) << "half of the limit after the last question";
  }
}

TEST(GpuIdleClock, NothingBeforeTheJobBeganCounts) {
  Watched job(100);
  job.clock.start(kBegan + 1000);
  EXPECT_EQ(job.next(), Do::warn);  // the node has seen idle GPUs since 0
  EXPECT_EQ(job.now, 1050);
}

TEST(GpuIdleClock, StandsStillWhileTheJobIsSuspended) {
  Watched job(100);
  EXPECT_EQ(job.next(), Do::warn);
  job.clock.asked.emplace(1, "n1");
  job.clock.suspended();
  EXPECT_FALSE(job.clock.told(1, "n1", 60, kBegan + 60)) << "nobody asks any more";
  job.clock.resumed(kBegan + 60, kBegan + 1000);
  job.clock.resumed(kBegan + 1010, kBegan + 2000);
  EXPECT_EQ(job.clock.idle(kBegan + 2000), 70);
  EXPECT_EQ(job.next(), Do::warn);
  EXPECT_EQ(job.now, 2020);
  // Pauses before it was busy do not matter.
  job.busy_until = 2025;
  EXPECT_EQ(job.next(), Do::wait);
  EXPECT_TRUE(job.clock.pauses.empty());
  EXPECT_EQ(job.next(), Do::warn);
  EXPECT_EQ(job.now, 2075);
}

TEST(GpuIdleClock, RemembersSoManyPausesAndNoMore) {
  GpuIdleClock clock;
  clock.resumed(1, 2);
  EXPECT_TRUE(clock.pauses.empty()) << "it has not begun";
  clock.start(kBegan);
  for (Seconds i = 0; i < 1000; ++i) clock.resumed(kBegan + 10 * i, kBegan + 10 * i + 5);
  EXPECT_LE(clock.pauses.size(), 64U);
  EXPECT_LE(clock.idle(kBegan + 10000), 10000 / 2);
}

TEST(GpuIdleClock, AllNodesHaveToBeIdle) {
  GpuIdleClock clock;
  clock.start(1);
  clock.asked = {{1, "a"}, {1, "b"}, {2, "a"}};
  EXPECT_FALSE(clock.told(1, "a", 100, 100));
  EXPECT_FALSE(clock.told(1, "c", 100, 100)) << "it was not asked";
  EXPECT_FALSE(clock.told(2, "a", 30, 100));
  EXPECT_TRUE(clock.told(1, "b", 90, 100));
  EXPECT_EQ(clock.idle(100), 30);
  EXPECT_EQ(clock.decide(100, 100), Do::wait);
}

TEST(GpuIdleClock, NobodyIsEndedWithoutAWarning) {
  Watched job(36000);
  job.now = 10000;
  EXPECT_EQ(job.ask(), Do::wait);
  job.limit(600);  // it was lowered
  job.clock.warnings = 0;
  EXPECT_EQ(job.ask(), Do::warn);
  EXPECT_EQ(job.left(), 60);
  EXPECT_EQ(job.ask(), Do::wait);
  EXPECT_EQ(job.next(), Do::end);
  EXPECT_EQ(job.now, 10060);
}

}  // namespace
}  // namespace berth::job
