// The clock of the grace runs only while all nodes do.
#include "command/launch_grace.h"

#include <gmock/gmock.h>

namespace berth::command {
namespace {

using std::chrono::seconds;
using Moment = FailureGrace::Moment;

Moment at(int second) {
  return Moment(seconds(1000 + second));
}

TEST(FailureGrace, RunsFromTheFirstFailure) {
  FailureGrace grace;
  EXPECT_FALSE(grace.until());
  grace.begin(at(0), seconds(30));
  grace.begin(at(10), seconds(30));  // a second failure does not begin it again
  EXPECT_EQ(grace.until(), at(30));
  grace.forget();
  EXPECT_FALSE(grace.until());
}

TEST(FailureGrace, StandsStillWhileANodeDoes) {
  FailureGrace grace;
  grace.begin(at(0), seconds(30));
  grace.pause("n1", at(10));
  grace.pause("n2", at(12));
  EXPECT_FALSE(grace.until());
  grace.go_on("n1", at(100));
  EXPECT_FALSE(grace.until());
  grace.go_on("n2", at(110));
  EXPECT_EQ(grace.until(), at(130));
}

TEST(FailureGrace, WaitsForANodeThatStoodStillBefore) {
  FailureGrace grace;
  grace.pause("n1", at(0));
  grace.begin(at(5), seconds(30));
  EXPECT_FALSE(grace.until());
  grace.go_on("n1", at(50));
  EXPECT_EQ(grace.until(), at(80));
}

TEST(FailureGrace, OneThatIsOverWhenStoppedIsOverWhenItGoesOn) {
  FailureGrace grace;
  grace.begin(at(0), seconds(30));
  grace.pause("n1", at(40));
  grace.go_on("n1", at(90));
  EXPECT_EQ(grace.until(), at(90));
}

}  // namespace
}  // namespace berth::command
