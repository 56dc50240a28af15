#include "controller/request_counts.h"

#include <gtest/gtest.h>

namespace berth::controller {
namespace {

TEST(RequestCounts, ByKindAndUserUntilReset) {
  RequestCounts counts;
  counts.count(wire::Kind::ListJobs, 7, 30);
  counts.count(wire::Kind::ListJobs, 8, 10);
  counts.count(wire::Kind::Ping, 7, 5);
  const RequestCounts::Counts seen = counts.counts();
  EXPECT_EQ(seen.kinds.at(wire::Kind::ListJobs).count, 2u);
  EXPECT_EQ(seen.kinds.at(wire::Kind::ListJobs).microseconds, 40u);
  EXPECT_EQ(seen.users.at(7).count, 2u);
  EXPECT_EQ(seen.users.at(7).microseconds, 35u);
  counts.reset();
  EXPECT_TRUE(counts.counts().kinds.empty());
}

TEST(RequestCounts, IsBounded) {
  RequestCounts counts;
  for (std::uint32_t uid = 0; uid < 2 * RequestCounts::kMostUsers; ++uid) {
    counts.count(wire::Kind::Ping, uid, 1);
  }
  EXPECT_EQ(counts.counts().users.size(), RequestCounts::kMostUsers);
  EXPECT_EQ(counts.counts().kinds.at(wire::Kind::Ping).count, 2 * RequestCounts::kMostUsers);
}

}  // namespace
}  // namespace berth::controller
