// How often agents speak, and when a silent one is noticed.
#include "job/silence.h"

#include <gtest/gtest.h>

namespace berth::job {
namespace {

TEST(Silence, FollowsSlurmdTimeout) {
  struct Times {
    std::uint32_t timeout, beat, silent;
  };
  for (const Times& row :
       {Times{300, 10, 20}, Times{30, 10, 20}, Times{29, 9, 18}, Times{10, 3, 6}, Times{3, 1, 2},
        Times{1, 1, 2}, Times{0, 10, 20}, Times{65533, 10, 20}}) {
    EXPECT_EQ(beat_seconds(row.timeout), row.beat) << row.timeout;
    EXPECT_EQ(silent_seconds(row.timeout), row.silent) << row.timeout;
  }
}

}  // namespace
}  // namespace berth::job
