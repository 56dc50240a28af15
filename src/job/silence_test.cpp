// How often agents speak, and when a silent one is noticed.
#include "job/silence.h"

#include <gtest/gtest.h>

namespace berth::job {
namespace {

TEST(Silence, FollowsSlurmdTimeout) {
  struct Row {
    std::uint32_t timeout, beat, silent;
  };
  for (const Row& row : {Row{300, 10, 20}, Row{30, 10, 20}, Row{29, 9, 18}, Row{10, 3, 6},
                         Row{3, 1, 2}, Row{1, 1, 2}, Row{0, 10, 20}, Row{65533, 10, 20}}) {
    EXPECT_EQ(beat_seconds(row.timeout), row.beat) << row.timeout;
    EXPECT_EQ(silent_seconds(row.timeout), row.silent) << row.timeout;
  }
}

}  // namespace
}  // namespace berth::job
