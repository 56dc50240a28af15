// The rules of quota.h: shares of connections, rates, what is held, deadlines.
#include "net/quota.h"

#include <gtest/gtest.h>

namespace berth::net {
namespace {

using namespace std::chrono_literals;
const QuotaTime kNow{1h};
constexpr std::uint32_t kAlice = 1000;
constexpr std::uint32_t kBob = 1001;

QuotaLimits small() {
  QuotaLimits limits;
  limits.all_connections = 6;
  limits.user_connections = 4;
  limits.unknown_connections = 2;
  limits.node_connections = 3;
  limits.user_requests_per_second = 10;
  limits.user_burst = 3;
  limits.unknown_requests_per_second = 2;
  limits.unknown_burst = 1;
  limits.user_working = 2;
  limits.user_working_bytes = 100;
  limits.user_held_bytes = 100;
  limits.all_held_bytes = 250;
  return limits;
}

TEST(Quota, LimitsFollowTheDescriptors) {
  struct Row {
    std::size_t descriptors, all, each, unknown;
  };
  for (const Row& row : {Row{64, 32, 8, 8}, {1024, 512, 128, 64}, {20000, 10000, 2500, 512}}) {
    const QuotaLimits limits = QuotaLimits::of_descriptors(row.descriptors);
    EXPECT_EQ(limits.all_connections, row.all) << row.descriptors;
    EXPECT_EQ(limits.user_connections, row.each) << row.descriptors;
    EXPECT_EQ(limits.unknown_connections, row.unknown) << row.descriptors;
    // What is left is for root and the agents.
    EXPECT_LE(limits.all_connections + limits.unknown_connections, row.descriptors * 5 / 8);
  }
}

TEST(Quota, AUserHasAShareOfTheConnections) {
  Quota quota(small());
  for (Guest guest = 1; guest <= 4; ++guest) {
    EXPECT_TRUE(quota.enter(guest, kAlice, false).admitted);
  }
  const auto refused = quota.enter(5, kAlice, false);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.why, "user 1000 has 4 connections, the most is 4");
  EXPECT_TRUE(quota.enter(6, kBob, false).admitted);
  EXPECT_TRUE(quota.enter(7, 0, true).admitted);
  quota.leave(2);
  EXPECT_TRUE(quota.enter(8, kAlice, false).admitted);
  EXPECT_EQ(quota.connections(kAlice), 4U);
}

TEST(Quota, KeptConnectionsCountToo) {
  Quota quota(small());
  for (Guest guest = 1; guest <= 4; ++guest) {
    quota.enter(guest, kAlice, false);
    quota.keep(guest);
  }
  EXPECT_FALSE(quota.enter(5, kAlice, false).admitted);
}

TEST(Quota, WhenAllAreTakenWhoHasMostGivesOneUp) {
  Quota quota(small());
  for (Guest guest = 1; guest <= 4; ++guest) quota.enter(guest, kAlice, false);
  quota.enter(5, kBob, false);
  quota.enter(6, kBob, false);
  quota.heard(1);  // so 2 is silent for longest
  auto third = quota.enter(7, 1002, false);
  EXPECT_TRUE(third.admitted);
  EXPECT_EQ(third.evict, 2U);
  EXPECT_EQ(third.why_evicted, "user 1000 has 4 connections, more than others, and others wait");
  quota.leave(2);
  // Who would have as many as the greediest himself does not get in.
  const auto fourth = quota.enter(8, kBob, false);
  EXPECT_FALSE(fourth.admitted);
  EXPECT_EQ(fourth.why, "users have 6 connections, the most is 6");
  // Root is not among those who are counted.
  EXPECT_TRUE(quota.enter(9, 0, true).admitted);
  // Kept ones are not evicted.
  for (const Guest guest : {1, 3, 4}) quota.keep(static_cast<Guest>(guest));
  EXPECT_FALSE(quota.enter(10, 1003, false).admitted);
}

TEST(Quota, StrangersAreFewAndHurried) {
  Quota quota(small());
  EXPECT_FALSE(quota.enter_unknown(1, "h1", kNow).evict);
  EXPECT_FALSE(quota.enter_unknown(2, "h1", kNow + 1s).evict);
  const auto third = quota.enter_unknown(3, "h1", kNow + 2s);
  EXPECT_EQ(third.evict, 1U);
  quota.leave(1);
  EXPECT_TRUE(quota.enter(2, kAlice, false).admitted);  // it has said who it is
  EXPECT_EQ(quota.connections(kAlice), 1U);
  EXPECT_TRUE(quota.expired(kNow + 11s).empty());
  EXPECT_EQ(quota.expired(kNow + 12s), (std::vector<Guest>{3}));
}

TEST(Quota, AmongStrangersThoseOfTheBusiestAddressGo) {
  QuotaLimits limits = small();
  limits.unknown_connections = 4;
  Quota quota(limits);
  EXPECT_FALSE(quota.enter_unknown(1, "far", kNow).evict);  // slow, and the oldest of all
  Guest last = 10;
  std::optional<Guest> oldest_of_flood = 11;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(quota.enter_unknown(++last, "flood", kNow).evict);
  for (int i = 0; i < 100; ++i) {
    const auto next = quota.enter_unknown(++last, "flood", kNow);
    EXPECT_EQ(next.evict, oldest_of_flood);
    quota.leave(*next.evict);
    ++*oldest_of_flood;
  }
  // A third address gets in at the cost of the flood too.
  EXPECT_EQ(quota.enter_unknown(2, "near", kNow).evict, oldest_of_flood);
  quota.leave(*oldest_of_flood);
  EXPECT_TRUE(quota.enter(1, kAlice, false).admitted);
  EXPECT_TRUE(quota.enter(2, kBob, false).admitted);
  // When all have gone nothing is left of them.
  for (Guest guest = 1; guest <= last; ++guest) quota.leave(guest);
  EXPECT_FALSE(quota.has_deadlines());
  EXPECT_FALSE(quota.enter_unknown(1000, "far", kNow).evict);
}

TEST(Quota, RequestsAreDelayedNotRefused) {
  Quota quota(small());
  quota.enter(1, kAlice, false);
  quota.enter(2, kAlice, false);
  quota.enter(3, kBob, false);
  quota.enter(4, 0, true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(quota.wait_for_request(1, kNow), 0ns);
  EXPECT_EQ(quota.wait_for_request(1, kNow), 100ms);
  EXPECT_EQ(quota.wait_for_request(2, kNow), 200ms);  // all connections of a user together
  EXPECT_EQ(quota.wait_for_request(3, kNow), 0ns);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(quota.wait_for_request(4, kNow), 0ns);
  EXPECT_EQ(quota.wait_for_request(1, kNow + 1s), 0ns);  // ten came in that second
  // The bucket is not filled by hanging up.
  quota.leave(1);
  quota.leave(2);
  quota.enter(5, kAlice, false);
  for (int i = 0; i < 3; ++i) quota.wait_for_request(5, kNow + 1s);
  for (int i = 0; i < 5; ++i) quota.wait_for_request(5, kNow + 1s);
  EXPECT_GT(quota.wait_for_request(5, kNow + 1s), 0ns);
}

TEST(Quota, StrangersOfOneAddressAskSlowly) {
  Quota quota(small());
  quota.enter_unknown(1, "h1", kNow);
  quota.enter_unknown(2, "h1", kNow);
  EXPECT_EQ(quota.wait_for_request(1, kNow), 0ns);
  EXPECT_EQ(quota.wait_for_request(2, kNow), 500ms);
  EXPECT_EQ(quota.wait_for_request(1, kNow), 1s);
  // Nor does another connection help.
  quota.leave(1);
  quota.enter_unknown(3, "h1", kNow);
  EXPECT_GT(quota.wait_for_request(3, kNow), 1s);
  quota.leave(2);
  quota.enter_unknown(4, "h2", kNow);
  EXPECT_EQ(quota.wait_for_request(4, kNow), 0ns);
  EXPECT_EQ(quota.wait_for_request(4, kNow + 1s), 0ns);
  // However many addresses there are, little is remembered.
  for (Guest guest = 100; guest < 10000; ++guest) {
    quota.enter_unknown(guest, std::to_string(guest), kNow + 2s);
    EXPECT_EQ(quota.wait_for_request(guest, kNow + 2s), 0ns);
    quota.leave(guest);
  }
}

TEST(Quota, WorkIsCountedByNumberAndBytes) {
  Quota quota(small());
  quota.enter(1, kAlice, false);
  quota.enter(2, kAlice, false);
  EXPECT_TRUE(quota.may_work(1, 1000));  // the first always may
  quota.begin_work(1, 60);
  EXPECT_TRUE(quota.may_work(2, 40));
  EXPECT_FALSE(quota.may_work(2, 41));
  quota.begin_work(2, 10);
  EXPECT_FALSE(quota.may_work(2, 1));
  quota.end_work(1);
  EXPECT_TRUE(quota.may_work(2, 1));
  quota.leave(2);  // its work is not waited for
  EXPECT_TRUE(quota.may_work(1, 1000));
}

TEST(Quota, BytesAreHeldWithinABudget) {
  Quota quota(small());
  using Hold = Quota::Hold;
  quota.enter(1, kAlice, false);
  quota.enter(2, kAlice, false);
  quota.enter(3, kAlice, false);
  quota.enter(4, 0, true);
  EXPECT_EQ(quota.hold(1, 60), Hold::go_on);
  EXPECT_EQ(quota.hold(2, 30), Hold::go_on);
  EXPECT_EQ(quota.hold(2, 50), Hold::wait);
  EXPECT_EQ(quota.hold(1, 110), Hold::go_on);  // the first one always finishes
  EXPECT_EQ(quota.hold(3, 10), Hold::wait);
  EXPECT_EQ(quota.hold(3, 50), Hold::drop);  // more than twice as much as he may hold
  EXPECT_EQ(quota.hold(4, 1 << 30), Hold::go_on);
  quota.leave(3);
  EXPECT_EQ(quota.hold(1, 0), Hold::go_on);
  EXPECT_EQ(quota.hold(2, 90), Hold::go_on);
  EXPECT_EQ(quota.held(), 90U);
}

TEST(Quota, AllTogetherHoldNoMoreThan) {
  Quota quota(small());
  for (Guest user = 0; user < 3; ++user) {
    quota.enter(10 + user, static_cast<std::uint32_t>(kAlice + user), false);
    EXPECT_EQ(quota.hold(10 + user, 80), Quota::Hold::go_on);
  }
  quota.enter(20, kAlice, false);
  EXPECT_EQ(quota.hold(20, 15), Quota::Hold::drop);
}

TEST(Quota, MachinesWithOneCertificateAreCountedTogether) {
  Quota quota(small());
  using Hold = Quota::Hold;
  for (Guest guest = 1; guest <= 3; ++guest) EXPECT_TRUE(quota.enter_node(guest, "a").admitted);
  const auto fourth = quota.enter_node(4, "a");
  EXPECT_FALSE(fourth.admitted);
  EXPECT_EQ(fourth.why, "3 connections show this certificate, the most is 3");
  EXPECT_TRUE(quota.enter_node(5, "b").admitted);
  EXPECT_EQ(quota.account(1), quota.account(2));
  EXPECT_NE(quota.account(1), quota.account(5));
  // Their bytes, requests and work, like a user's.
  EXPECT_EQ(quota.hold(1, 90), Hold::go_on);
  EXPECT_EQ(quota.hold(2, 20), Hold::wait);
  EXPECT_EQ(quota.hold(3, 100), Hold::drop);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(quota.wait_for_request(1, kNow), 0ns);
  EXPECT_GT(quota.wait_for_request(2, kNow), 0ns);
  quota.begin_work(1, 60);
  quota.begin_work(2, 10);
  EXPECT_FALSE(quota.may_work(3, 1));
  // What one node does costs neither users nor another node anything.
  EXPECT_EQ(quota.wait_for_request(5, kNow), 0ns);
  EXPECT_TRUE(quota.may_work(5, 1000));
  EXPECT_EQ(quota.held(), 0U);
  for (Guest guest = 10; guest < 14; ++guest)
    EXPECT_TRUE(quota.enter(guest, kAlice, false).admitted);
  EXPECT_EQ(quota.hold(10, 80), Hold::go_on);
  // A node has vouched: the connection is its user's.
  EXPECT_TRUE(quota.enter(1, kBob, false).admitted);
  EXPECT_EQ(quota.connections(kBob), 1U);
  EXPECT_TRUE(quota.enter_node(4, "a").admitted);
  EXPECT_FALSE(quota.enter_node(6, "a").admitted);
}

TEST(Quota, LargeFramesHaveMoreTime) {
  Quota quota{QuotaLimits()};
  EXPECT_EQ(quota.frame_patience(100), 10s);
  EXPECT_EQ(quota.frame_patience(std::size_t{16} << 20), 74s);
  EXPECT_EQ(quota.answer_patience(std::size_t{1} << 20), 64s);
  quota.enter(1, kAlice, false);
  quota.set_deadline(1, kNow + 5s);
  EXPECT_TRUE(quota.expired(kNow + 4s).empty());
  quota.set_deadline(1, kNow + 8s);
  EXPECT_TRUE(quota.expired(kNow + 7s).empty());
  EXPECT_EQ(quota.expired(kNow + 8s), (std::vector<Guest>{1}));
  EXPECT_FALSE(quota.has_deadlines());
}

}  // namespace
}  // namespace berth::net
