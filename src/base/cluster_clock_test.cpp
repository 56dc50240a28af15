// The cluster's time against a wall clock that is set, and a machine that sleeps and starts anew.
#include "base/cluster_clock.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace berth {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Seconds = std::chrono::seconds;
using Seen = ClusterClock::Seen;

constexpr Seconds kWall{1'800'000'000};

class FakeTime final : public TimeSource {
 public:
  nanoseconds set_by{0};
  BootTime since_boot{Seconds(1000)};
  std::uint64_t number = 7;

  [[nodiscard]] nanoseconds wall() const override {
    return kWall + (since_boot - Seconds(1000)) + set_by;
  }
  [[nodiscard]] BootTime boot() const override { return since_boot; }
  [[nodiscard]] std::uint64_t boot_number() const override { return number; }
};

TEST(ClusterClock, GoesOnWithTheMachine) {
  FakeTime time;
  ClusterClock clock(time);
  EXPECT_EQ(clock.seconds(), kWall.count());
  time.since_boot += milliseconds(2500);
  EXPECT_EQ(clock.seconds(), kWall.count() + 2);
  EXPECT_EQ(clock.until(kWall.count() + 3), milliseconds(500));
  EXPECT_EQ(clock.until(kWall.count()), milliseconds(-2500));
  EXPECT_EQ(clock.look(), Seen::nothing);
}

// What happens to the wall clock, and what the clock says to it.
struct Event {
  const char* what;
  Seconds passes;      // before it
  nanoseconds set_by;  // all in all
  Seen seen;
  std::int64_t wall_ahead;  // as told; 0 = followed
  std::int64_t time;        // since the start, when it has been looked at
};

TEST(ClusterClock, Table) {
  struct Case {
    const char* name;
    std::vector<Event> events;
  };
  const auto s = [](int n) { return nanoseconds(Seconds(n)); };
  const std::vector<Case> cases = {
      {"small differences are followed",
       {{"3 s forward", Seconds(10), s(3), Seen::nothing, 0, 10},
        {"half of it", Seconds(150), s(3), Seen::nothing, 0, 161},
        {"all of it", Seconds(150), s(3), Seen::nothing, 0, 313},
        {"and no more", Seconds(1000), s(3), Seen::nothing, 0, 1313},
        {"3 s backwards", Seconds(0), s(0), Seen::nothing, 0, 1313},
        {"half of it", Seconds(150), s(0), Seen::nothing, 0, 1461},
        {"all of it", Seconds(150), s(0), Seen::nothing, 0, 1610}}},
      {"a clock that was set is not followed",
       {{"an hour forward", Seconds(10), s(3600), Seen::set, 3600, 10},
        {"later", Seconds(300), s(3600), Seen::nothing, 3600, 310},
        {"and long after", Seconds(3000), s(3600), Seen::nothing, 3600, 3310}}},
      {"backwards",
       {{"an hour backwards", Seconds(10), s(-3600), Seen::set, -3600, 10},
        {"later", Seconds(300), s(-3600), Seen::nothing, -3600, 310}}},
      {"set and set right again",
       {{"forward", Seconds(10), s(3600), Seen::set, 3600, 10},
        {"back", Seconds(10), s(0), Seen::back, 0, 20},
        {"later", Seconds(10), s(0), Seen::nothing, 0, 30}}},
      {"several times",
       {{"forward", Seconds(10), s(3600), Seen::set, 3600, 10},
        {"further", Seconds(10), s(7200), Seen::set, 7200, 20},
        {"backwards", Seconds(10), s(-60), Seen::set, -60, 30},
        {"a little on", Seconds(10), s(-57), Seen::nothing, -60, 40}}},
      {"5 s are followed, 6 are not",
       {{"5 s", Seconds(10), s(5), Seen::nothing, 0, 10},
        {"6 s", Seconds(0), s(6), Seen::set, 6, 10}}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    FakeTime time;
    ClusterClock clock(time);
    for (const Event& event : one.events) {
      SCOPED_TRACE(event.what);
      time.since_boot += event.passes;
      time.set_by = event.set_by;
      EXPECT_EQ(clock.look(), event.seen);
      EXPECT_EQ(clock.ahead().value_or(Seconds(0)).count(), event.wall_ahead);
      EXPECT_EQ(clock.seconds() - kWall.count(), event.time);
    }
  }
}

TEST(ClusterClock, NeverGoesBackwardsUnlessItIsTold) {
  std::mt19937 random(1);
  FakeTime time;
  ClusterClock clock(time);
  nanoseconds last = clock.until(0);
  for (int i = 0; i < 100000; ++i) {
    if (random() % 4 == 0) time.since_boot += milliseconds(random() % 3000);
    if (random() % 8 == 0) time.set_by = milliseconds(static_cast<int>(random() % 20000) - 10000);
    if (random() % 2 == 0) clock.look();
    const nanoseconds left = clock.until(0);  // falls as time goes on
    ASSERT_LE(left, last);
    last = left;
  }
}

TEST(ClusterClock, WhatHasStoodForTenMinutesIsDue) {
  FakeTime time;
  ClusterClock clock(time);
  EXPECT_FALSE(clock.adopts_in());
  time.set_by = Seconds(3600);
  clock.look();
  EXPECT_EQ(clock.adopts_in(), Seconds(600));
  time.since_boot += Seconds(599);
  clock.look();
  EXPECT_EQ(clock.adopts_in(), Seconds(1));
  // Set once more: it begins anew.
  time.set_by = Seconds(1800);
  EXPECT_EQ(clock.look(), Seen::set);
  EXPECT_EQ(clock.adopts_in(), Seconds(600));
  time.since_boot += Seconds(600);
  EXPECT_EQ(clock.look(), Seen::nothing);
  EXPECT_EQ(clock.adopts_in(), Seconds(0));
}

TEST(ClusterClock, AdoptsInWholeSecondsAndFollowsTheRest) {
  FakeTime time;
  ClusterClock clock(time);
  time.set_by = Seconds(-3600) + milliseconds(300);
  clock.look();
  const std::int64_t before = clock.seconds();
  EXPECT_EQ(clock.adopt(), Seconds(-3600));
  EXPECT_EQ(clock.seconds(), before - 3600);
  EXPECT_EQ(clock.adopted(), -3600);
  EXPECT_EQ(clock.even_seconds(), before);
  EXPECT_FALSE(clock.ahead());
  EXPECT_EQ(clock.look(), Seen::nothing);
  time.since_boot += Seconds(100);
  EXPECT_EQ(clock.until(0), -time.wall());
  // There and back: nothing is left of it.
  time.set_by = nanoseconds(0);
  clock.look();
  EXPECT_EQ(clock.adopt(), Seconds(3600));
  EXPECT_EQ(clock.adopted(), 0);
}

TEST(ClusterClock, GoesOnInALaterProcessOfTheSameBoot) {
  FakeTime time;
  ClusterClock::Mark mark;
  {
    ClusterClock clock(time);
    time.set_by = Seconds(60);
    clock.look();
    clock.adopt();
    mark = clock.mark();
    EXPECT_EQ(mark.adopted, 60);
  }
  time.since_boot += Seconds(30);
  time.set_by = Seconds(3660);  // while no process looked
  {
    ClusterClock clock(time);
    ASSERT_TRUE(clock.resume(mark));
    EXPECT_EQ(clock.seconds(), kWall.count() + 90);
    EXPECT_EQ(clock.even_seconds(), kWall.count() + 30);
    EXPECT_EQ(clock.look(), Seen::set);
    EXPECT_EQ(clock.ahead(), Seconds(3600));
    EXPECT_EQ(clock.mark(), mark);
  }
  time.number = 8;
  ClusterClock clock(time);
  EXPECT_FALSE(clock.resume(mark));
  EXPECT_EQ(clock.seconds(), kWall.count() + 3690);
  EXPECT_EQ(clock.adopted(), 60);  // what was remembered before is of that clock
  time.number = 0;
  EXPECT_FALSE(clock.resume({}));
}

TEST(MachineTime, IsTheMachines) {
  const MachineTime time;
  const nanoseconds off = time.wall() - std::chrono::system_clock::now().time_since_epoch();
  EXPECT_LT(off, Seconds(5));
  EXPECT_GT(off, Seconds(-5));
  const BootTime boot = time.boot();
  EXPECT_LE(boot, boot_now());
  EXPECT_NE(time.boot_number(), 0U);
  EXPECT_EQ(time.boot_number(), MachineTime().boot_number());
  EXPECT_LE(time.boot_number(), static_cast<std::uint64_t>(INT64_MAX));  // as the store keeps it
}

}  // namespace
}  // namespace berth
