// Nodes come in the order in which they can be had, whatever is planned and taken back meanwhile.
#include "schedule/soonest.h"

#include <gtest/gtest.h>

#include <random>

#include "job/state_test_fixture.h"

namespace berth::schedule {
namespace {

using cluster::Room;
using job::testing::Controller;
using job::testing::kStart;

TEST(Soonest, ManyNeedsAreOfOneKind) {
  const NeedKind kind = kind_of(Room{5000, 12, 2, 0}, 4000, nullptr);
  EXPECT_EQ(kind, kind_of(Room{90000, 15, 2, 0}, 1024, nullptr));
  EXPECT_NE(kind, kind_of(Room{5000, 12, 3, 0}, 4000, nullptr));
  EXPECT_NE(kind, kind_of(Room{5000, 12, 2, 1}, 4000, nullptr));
  EXPECT_NE(kind, kind_of(Room{5000, 12, 2, 0}, 5000, nullptr));
  // Where no GPU is asked for, cores decide.
  EXPECT_EQ(kind_of(Room{1, 12, 0, 0}, 60, nullptr), kind_of(Room{9, 8, 0, 0}, 60, nullptr));
  EXPECT_NE(kind_of(Room{1, 12, 0, 0}, 60, nullptr), kind_of(Room{1, 16, 0, 0}, 60, nullptr));
}

TEST(Soonest, AKindNeedsNoMoreThanAnyOfIt) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const Room need{random() % 9999, static_cast<std::uint32_t>(random() % 300),
                    static_cast<std::uint32_t>(random() % 9),
                    static_cast<std::uint32_t>(random() % 2)};
    const Time seconds = 1 + static_cast<Time>(random() % 1000000);
    const NeedKind kind = kind_of(need, seconds, nullptr);
    EXPECT_TRUE(need.holds(kind.room()));
    EXPECT_LE(kind.seconds, seconds);
    EXPECT_GE(kind.seconds, 1);
  }
}

/// Two jobs run on every node but the last, and end one after the other.
struct Busy {
  Busy() : calendar(c.state) {
    const std::size_t nodes = c.state.cluster().nodes.size();
    for (std::size_t i = 0; i + 1 < nodes; ++i) {
      const std::string& name = c.state.cluster().nodes[i].name;
      ids.push_back(c.started("-w " + name + " --exclusive -t " + std::to_string(10 + 5 * i)));
    }
    calendar.begin(c.now);
  }
  /// All nodes in the order of a search, with the moment of each.
  std::vector<std::pair<Time, NodeIndex>> all(Soonest& nodes) {
    const Soonest::Search search(&nodes);
    std::vector<std::pair<Time, NodeIndex>> out;
    for (Time at = nodes.next(calendar); at != Soonest::kNever; at = nodes.next(calendar)) {
      out.emplace_back(at, nodes.take());
    }
    return out;
  }
  /// The same, one node after the other.
  std::vector<std::pair<Time, NodeIndex>> expected(const NeedKind& kind) {
    std::vector<std::pair<Time, NodeIndex>> out;
    for (NodeIndex node = 0; node < c.state.cluster().nodes.size(); ++node) {
      const Time at =
          calendar.timeline(node).earliest(at_least(kind.room()), c.now + 1, kind.seconds);
      if (at > 0) out.emplace_back(at, node);
    }
    std::ranges::sort(out);
    return out;
  }
  void plan(JobId id, NodeIndex node, Time from, Time until) {
    Planned planned{id, {from, until}, c.state.find(ids.front())->allocation};
    planned.allocation.nodes.front().node = node;
    calendar.add(std::move(planned));
  }
  Controller c;
  std::vector<JobId> ids;
  Calendar calendar;
};

TEST(Soonest, NodesComeInTheOrderInWhichTheyCanBeHad) {
  Busy b;
  const NeedKind kind = kind_of(Room{0, 1, 0, 0}, 600, nullptr);
  Soonest nodes(kind, b.calendar.openings(), b.c.state.cluster().nodes.size());
  const auto last = static_cast<NodeIndex>(b.c.state.cluster().nodes.size() - 1);
  nodes.again(last, b.c.now + 1);  // it has room now
  const auto found = b.all(nodes);
  ASSERT_EQ(found.size(), b.c.state.cluster().nodes.size());
  EXPECT_EQ(found.front(), std::pair(Time{kStart + 1}, last));
  EXPECT_EQ(found, b.expected(kind));
  EXPECT_EQ(b.all(nodes), found) << "a search that is over leaves nothing behind";
}

TEST(Soonest, PlansThatComeAndGoAreSeen) {
  Busy b;
  const std::size_t count = b.c.state.cluster().nodes.size();
  const auto last = static_cast<NodeIndex>(count - 1);
  const NeedKind kind = kind_of(Room{0, 1, 0, 0}, 600, nullptr);
  Soonest nodes(kind, b.calendar.openings(), count);
  nodes.again(last, b.c.now + 1);
  std::mt19937 random(11);
  std::vector<JobId> planned;
  std::size_t regained = b.calendar.regained().size();
  for (JobId id = 1000; id < 1400; ++id) {
    if (!planned.empty() && random() % 3 == 0) {
      const std::size_t at = random() % planned.size();
      b.calendar.remove(planned[at]);
      planned.erase(planned.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const Time from = kStart + 60 * static_cast<Time>(random() % 200);
      b.plan(id, static_cast<NodeIndex>(random() % count), from,
             from + 60 + static_cast<Time>(random() % 3000));
      planned.push_back(id);
    }
    for (; regained < b.calendar.regained().size(); ++regained) {
      nodes.again(b.calendar.regained()[regained], b.c.now + 1);
    }
    ASSERT_EQ(b.all(nodes), b.expected(kind)) << "after " << id;
  }
}

}  // namespace
}  // namespace berth::schedule
