// When jobs have to end that have lost their controller.
#include "node/lease.h"

#include <gtest/gtest.h>

namespace berth::node {
namespace {

using std::chrono::seconds;

Lease::Moment at(int second) {
  return seconds(second);
}

TEST(Lease, EndsItsMarginEarly) {
  struct Case {
    int lease;
    std::optional<int> end;  // seconds after it began to count
  };
  const Lease lease(at(1000));
  for (const Case& row : {Case{0, std::nullopt}, Case{1, 0}, Case{4, 3}, Case{10, 8}, Case{100, 80},
                          Case{300, 270}, Case{3600, 3570}}) {
    const auto end = lease.end_of(seconds(row.lease));
    ASSERT_EQ(end.has_value(), row.end.has_value()) << row.lease;
    if (end) {
      EXPECT_EQ(*end, at(1000 + *row.end)) << row.lease;
    }
  }
}

TEST(Lease, CountsFromTheSendingOfWhatWasAnswered) {
  Lease lease;
  EXPECT_FALSE(lease.end_of(seconds(10)));  // nothing was ever begun
  lease.sent(1, at(100));
  EXPECT_FALSE(lease.from());
  lease.sent(2, at(110));
  lease.answered(1);
  EXPECT_EQ(lease.from(), at(100));
  lease.sent(3, at(120));
  lease.answered(3);
  EXPECT_EQ(lease.from(), at(120));
  lease.answered(2);  // out of order: it is older
  EXPECT_EQ(lease.from(), at(120));
  lease.answered(77);  // never asked
  EXPECT_EQ(lease.from(), at(120));
}

TEST(Lease, AnAnswerOfAnotherConnectionCountsNothing) {
  Lease lease(at(50));
  lease.sent(4, at(60));
  lease.forget_questions();
  lease.answered(4);
  EXPECT_EQ(lease.from(), at(50));
}

TEST(Lease, RestsFromTheLastAnswerAndEndsWithTheNext) {
  Lease lease;
  lease.sent(1, at(100));
  lease.answered(1);
  lease.sent(2, at(110));
  lease.rest(seconds(3600));
  EXPECT_EQ(lease.from(), at(3700));
  lease.rest(seconds(3600));  // said twice
  EXPECT_EQ(lease.from(), at(3700));
  EXPECT_EQ(lease.end_of(seconds(10)), at(3708));
  // The next controller knows only what it has heard itself.
  lease.sent(3, at(400));
  lease.answered(3);
  EXPECT_EQ(lease.from(), at(400));
  // It may have heard a registration whose answer does not come.
  lease.rest(seconds(3600));
  EXPECT_EQ(lease.from(), at(4000));
  lease.end_rest(at(500));
  EXPECT_EQ(lease.from(), at(500));
  lease.end_rest(at(600));  // the next attempt is none that was heard
  EXPECT_EQ(lease.from(), at(500));
  Lease taken_up(at(4000));  // by another agent
  taken_up.end_rest(at(700));
  EXPECT_EQ(taken_up.from(), at(700));
  Lease never;
  never.rest(seconds(3600));
  EXPECT_FALSE(never.from());
}

}  // namespace
}  // namespace berth::node
