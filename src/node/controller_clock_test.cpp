// The controller's time as an agent knows it, and how far the agent's own clock is off.
#include "node/controller_clock.h"

#include <gtest/gtest.h>

namespace berth::node {
namespace {

using Seconds = std::chrono::seconds;
using Milliseconds = std::chrono::milliseconds;

constexpr std::int64_t kEven = 1'800'000'000;

TEST(ControllerClock, KnowsNothingBeforeAnAnswer) {
  ControllerClock clock;
  EXPECT_FALSE(clock.even_seconds(Seconds(100)));
  EXPECT_EQ(clock.ahead(Seconds(5), Seconds(100)), 0);
  clock.asked(1, Seconds(100));
  clock.answered(1, {}, Seconds(101));  // an older controller tells nothing
  EXPECT_FALSE(clock.even_seconds(Seconds(102)));
  clock.answered(2, {.even_time = kEven}, Seconds(101));  // nobody asked
  EXPECT_FALSE(clock.even_seconds(Seconds(102)));
  clock.asked(3, Seconds(100));
  clock.forget_questions();
  clock.answered(3, {.even_time = kEven}, Seconds(101));
  EXPECT_FALSE(clock.even_seconds(Seconds(102)));
}

TEST(ControllerClock, GoesOnFromTheLastAnswer) {
  ControllerClock clock;
  clock.asked(1, Seconds(100));
  clock.asked(2, Seconds(110));
  clock.answered(1, {.even_time = kEven}, Seconds(111));
  // It was that time when the answer was written at the latest: no ticket expires too soon.
  EXPECT_EQ(clock.even_seconds(Seconds(111)), kEven);
  EXPECT_EQ(clock.even_seconds(Seconds(171)), kEven + 60);
  clock.answered(2, {.even_time = kEven + 15}, Seconds(112));
  EXPECT_EQ(clock.even_seconds(Seconds(112)), kEven + 15);
  EXPECT_EQ(clock.even_seconds(Seconds(112) + Milliseconds(999)), kEven + 15);
}

TEST(ControllerClock, AheadTable) {
  struct Case {
    const char* name;
    Seconds takes;         // from the question to the answer
    std::int64_t adopted;  // by the controller
    std::int64_t wall;     // of this machine beyond kEven, as the answer comes
    std::int64_t expected;
  };
  for (const Case& one : {
           Case{"right", Seconds(0), 0, 0, 0},
           Case{"a little ahead", Seconds(0), 0, 5, 0},
           Case{"a little behind", Seconds(0), 0, -5, 0},
           Case{"an hour ahead", Seconds(0), 0, 3601, 3600},
           Case{"an hour behind", Seconds(0), 0, -3600, -3600},
           Case{"a slow answer proves nothing", Seconds(60), 0, 60, 0},
           Case{"but this", Seconds(60), 0, 100, 39},
           Case{"the controller has adopted an hour", Seconds(0), 3600, 3600, 0},
           Case{"and this machine has not", Seconds(0), 3600, 0, -3600},
       }) {
    SCOPED_TRACE(one.name);
    ControllerClock clock;
    clock.asked(1, Seconds(1000));
    const auto at = Seconds(1000) + one.takes;
    clock.answered(1, {.even_time = kEven, .adopted = one.adopted}, at);
    EXPECT_EQ(clock.ahead(Seconds(kEven + one.wall), at), one.expected);
    EXPECT_EQ(clock.ahead(Seconds(kEven + one.wall + 500), at + Seconds(500)), one.expected);
  }
}

}  // namespace
}  // namespace berth::node
