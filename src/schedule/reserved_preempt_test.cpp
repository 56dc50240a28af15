// Preemption stays within reservations, and out of those of others.
#include <gtest/gtest.h>

#include "schedule/reserve_test_fixture.h"
#include "schedule/schedule.h"

namespace berth::schedule {
namespace {

using job::JobId;
using job::testing::Controller;

cluster::Cluster two_tiers() {
  cluster::Cluster c = place::corpus::make();
  for (const char* name : {"low", "high"}) place::corpus::add_partition(c, name, {});
  return c;
}

job::Policy by_tier() {
  job::Policy policy;
  policy.preempt.by_tier = true;
  policy.preempt.mode = job::PreemptMode::cancel;
  policy.partitions["high"].priority_tier = 10;
  return policy;
}

struct ReservedWorld : Controller {
  ReservedWorld() : Controller(by_tier(), two_tiers()) {}
  std::size_t look() {
    std::size_t preempted = 0;
    constexpr int kMost = 1000;
    for (int i = 0; i < kMost; ++i) {
      const Figures some = scheduler.run(state, now);
      preempted += some.preempted;
      if (!some.unfinished) break;
    }
    return preempted;
  }
  Scheduler scheduler;
};

TEST(ReservedPreempt, NoPlaceIsTakenWhereItCouldNotRun) {
  ReservedWorld w;
  const std::vector<reservation::Key> keys = {
      {"StartTime", "now"}, {"Duration", "60"}, {"Nodes", "gpu1"}};
  ASSERT_TRUE(testing::reserve(w.state, keys, w.now));
  const JobId outside = w.submit("-p low -w gpu2 --exclusive -t 50");
  const JobId inside = w.submit("-p low --reservation=r -w gpu1 --exclusive -t 50");
  w.look();
  w.begun(outside);
  w.begun(inside);
  ASSERT_EQ(w.shown(outside), "RUNNING None");
  ASSERT_EQ(w.shown(inside), "RUNNING None");
  // One of the reservation takes the place of one in it, one outside that of nobody there.
  const JobId stranger = w.submit("-p high -w gpu1 --exclusive -t 5");
  EXPECT_EQ(w.look(), 0U);
  const JobId urgent = w.submit("-p high --reservation=r --exclusive -t 5");
  EXPECT_EQ(w.look(), 1U);
  EXPECT_EQ(w.at(inside).base, job::Base::preempted);
  EXPECT_EQ(w.shown(outside), "RUNNING None");
  w.gone(inside);
  w.look();
  EXPECT_EQ(w.shown(urgent), "RUNNING+CONFIGURING None");
  EXPECT_EQ(w.at(urgent).reservation, "r");
  EXPECT_TRUE(w.at(stranger).pending());
}

}  // namespace
}  // namespace berth::schedule
