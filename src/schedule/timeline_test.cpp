// What is free of one node as time goes on, and that a plan may come and go without the whole being
// worked out anew.
#include "schedule/timeline.h"

#include <gtest/gtest.h>

#include <random>

#include "job/state_test_fixture.h"
#include "schedule/running.h"

namespace berth::schedule {
namespace {

using cluster::NodeShare;
using cluster::Room;
using job::testing::Controller;
using job::testing::kStart;

/// gpu1 with two jobs that run, and shares of it for others to plan with.
struct OneNode {
  OneNode() {
    const JobId first = c.started("-w gpu1 -n2 --mem=1G --gres=gpu:1 -t 10");
    const JobId second = c.started("-w gpu1 -n1 --mem=2G -t 20");
    node = *c.state.cluster().find_node("gpu1");
    shares = {share_of(first), share_of(second)};
    running = running_uses(c.state, node, kStart);
  }
  [[nodiscard]] NodeShare share_of(JobId id) const {
    return c.state.find(id)->allocation.nodes.front();
  }
  [[nodiscard]] Timeline timeline(const std::vector<Timeline::Use>& planned = {}) const {
    std::vector<Timeline::Use> all = running;
    all.insert(all.end(), planned.begin(), planned.end());
    Timeline out;
    out.work_out(c.state.cluster().nodes[node], c.state.usage().at(node), kStart, all);
    return out;
  }
  [[nodiscard]] Room whole() const {
    Room room;
    room.cores = static_cast<std::uint32_t>(c.state.cluster().nodes[node].cores());
    return room;
  }
  Controller c;
  NodeIndex node = 0;
  std::vector<NodeShare> shares;
  std::vector<Timeline::Use> running;
};

TEST(Timeline, RoomGrowsAsJobsEnd) {
  const OneNode one;
  const Timeline timeline = one.timeline();
  Room most = one.whole();
  EXPECT_EQ(timeline.earliest(at_least(most), kStart, 60), kStart + 1200);
  --most.cores;
  EXPECT_EQ(timeline.earliest(at_least(most), kStart, 60), kStart + 600);
  EXPECT_EQ(timeline.earliest(at_least({}), kStart, 60), kStart);
  most.cores += 2;
  EXPECT_EQ(timeline.earliest(at_least(most), kStart, 60), 0);
}

TEST(Timeline, WhatIsPlannedIsGoneInItsTimeOnly) {
  const OneNode one;
  Timeline timeline = one.timeline();
  const Amount amount(one.shares[0], false);
  timeline.plan({kStart + 1500, kStart + 2000}, amount);
  const Room whole = one.whole();
  EXPECT_EQ(timeline.earliest(at_least(whole), kStart, 300), kStart + 1200) << "before it";
  EXPECT_EQ(timeline.earliest(at_least(whole), kStart, 301), kStart + 2000) << "after it";
  EXPECT_EQ(timeline.next_change(kStart + 1200), kStart + 1500);
  timeline.plan({kStart + 1500, kStart + 2000}, amount, -1);
  EXPECT_EQ(timeline.earliest(at_least(whole), kStart, 301), kStart + 1200) << "it was given up";
}

TEST(Timeline, AWholeNodeLeavesNothing) {
  const OneNode one;
  Timeline timeline = one.timeline();
  timeline.plan({kStart + 100, kStart + 200}, Amount(one.shares[1], true));
  Room little;
  little.cores = 1;
  EXPECT_EQ(timeline.earliest(at_least(little), kStart, 101), kStart + 200);
}

TEST(Timeline, WhatIsFarIsNotLookedAtToItsEnd) {
  const OneNode one;
  Timeline timeline = one.timeline();
  timeline.plan({kStart + 1500, kStart + 2000}, Amount(one.shares[0], false));
  const Amount whole = at_least(one.whole());
  EXPECT_EQ(timeline.earliest(whole, kStart, 301, kStart + 1200), kStart + 2000)
      << "what may be near is looked at";
  EXPECT_EQ(timeline.earliest(whole, kStart, 301, kStart + 1000), kStart + 1200)
      << "it is after 1000, that will do";
}

TEST(Timeline, WhoNeedsNoneMayStartWhereTooMuchIsPlanned) {
  const OneNode one;
  Timeline timeline = one.timeline();
  Amount too_much(one.shares[0], false);
  too_much.gpus = 100;
  timeline.plan({kStart, kStart + 100}, too_much);
  Room need;
  need.cores = 1;
  EXPECT_EQ(timeline.earliest(at_least(need), kStart, 60), kStart);
  need.gpus = 1;
  EXPECT_EQ(timeline.earliest(at_least(need), kStart, 60), kStart + 100);
}

TEST(Timeline, PlansOneByOneAreAsGoodAsAllAtOnce) {
  const OneNode one;
  std::mt19937 random(1);
  const auto any = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  for (int round = 0; round < 200; ++round) {
    Timeline kept = one.timeline();
    std::vector<Timeline::Use> planned;
    for (int i = any(12); i > 0; --i) {
      const Time from = kStart - 50 + any(30) * 50;
      planned.push_back({{from, from + 50 + any(10) * 50},
                         &one.shares[static_cast<std::size_t>(any(1))],
                         any(9) == 0,
                         false});
      kept.plan(planned.back().span, Amount(*planned.back().share, planned.back().whole_node));
      if (any(3) > 0) continue;
      kept.plan(planned.back().span, Amount(*planned.back().share, planned.back().whole_node), -1);
      planned.pop_back();
    }
    const Timeline anew = one.timeline(planned);
    for (int question = 0; question < 50; ++question) {
      Room need;
      need.cores = static_cast<std::uint32_t>(any(static_cast<int>(one.whole().cores)));
      need.gpus = static_cast<std::uint32_t>(any(2));
      need.memory_mb = static_cast<std::uint64_t>(any(4)) * 1024;
      need.idle = any(5) == 0 ? 1 : 0;
      const Time from = kStart + any(2000);
      const Time seconds = 1 + any(700);
      const Amount least = at_least(need);
      EXPECT_EQ(kept.earliest(least, from, seconds), anew.earliest(least, from, seconds))
          << "round " << round << ": " << need.cores << " cores from " << from - kStart << " for "
          << seconds;
    }
  }
}

}  // namespace
}  // namespace berth::schedule
