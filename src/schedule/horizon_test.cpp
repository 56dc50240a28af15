// The list of openings is kept from walk to walk; whatever happens to a running job shows in it.
#include "schedule/horizon.h"

#include <gtest/gtest.h>

#include <functional>

#include "job/state_test_fixture.h"
#include "schedule/horizon_test_check.h"

namespace berth::schedule {
namespace {

using job::testing::Controller;
using job::testing::kRoot;
using job::testing::kStart;

struct Kept {
  Kept()
      : first(c.started("-w gpu1 -n2 --mem=1G -t 10")),
        second(c.started("-w gpu1 -n2 --mem=1G -t 20")) {}
  /// The list changes, and is what it would be if it were made anew.
  void expect_change(const std::function<void()>& what) {
    const std::vector<Opening> before = testing::follow(kept, c.state, c.now);
    what();
    testing::expect_up_to_date(kept, c.state, c.now);
    EXPECT_NE(testing::follow(kept, c.state, c.now), before);
  }
  Controller c;
  Horizon kept;
  JobId first;
  JobId second;
};

TEST(Horizon, ListsEndsInTheOrderOfTime) {
  Kept k;
  const std::vector<Opening>& all = testing::follow(k.kept, k.c.state, k.c.now);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].at, kStart + 600);
  EXPECT_EQ(all[1].at, kStart + 1200);
  EXPECT_EQ(all[0].node, all[1].node);
  EXPECT_LT(all[0].room.cores, all[1].room.cores);
}

TEST(Horizon, AJobThatComesOrGoes) {
  Kept k;
  k.expect_change([&] { k.c.started("-N1 -n1 -t 5"); });
  k.expect_change([&] { k.c.script_ends(k.first); });
  k.expect_change([&] { k.c.gone(k.first); });
}

TEST(Horizon, AnotherTimeLimit) {
  Kept k;
  k.expect_change([&] {
    job::JobChange change;
    change.time_limit_minutes = 30;
    ASSERT_TRUE(k.c.state.change(k.first, change, kRoot, k.c.now));
  });
  EXPECT_EQ(testing::follow(k.kept, k.c.state, k.c.now).back().at, kStart + 1800);
}

TEST(Horizon, OneThatStandsStillEndsLaterEverySecond) {
  Kept k;
  (void)testing::follow(k.kept, k.c.state, k.c.now);
  ASSERT_TRUE(k.c.state.suspend(k.second, kRoot, k.c.now));
  for (int i = 0; i < 3; ++i) {
    k.expect_change([&] { k.c.now += 7; });
  }
  ASSERT_TRUE(k.c.state.resume(k.second, kRoot, k.c.now));
  testing::expect_up_to_date(k.kept, k.c.state, k.c.now);
  EXPECT_EQ(testing::follow(k.kept, k.c.state, k.c.now).back().at, kStart + 1200 + 21);
}

TEST(Horizon, ANodeThatIsNotUsableIsLeftOut) {
  Kept k;
  k.expect_change([&] {
    job::NodeChange drain;
    drain.state = "DRAIN";
    drain.reason = "fan";
    drain.caller = kRoot;
    const auto name = k.c.at(k.first).nodes.front();
    ASSERT_TRUE(k.c.state.change_node(name, drain, k.c.now));
  });
  EXPECT_TRUE(testing::follow(k.kept, k.c.state, k.c.now).empty());
}

}  // namespace
}  // namespace berth::schedule
