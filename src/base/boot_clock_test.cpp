// The clock of the boot and its alarm.
#include "base/boot_clock.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace berth {
namespace {

bool rings(const BootAlarm& alarm, int milliseconds) {
  pollfd one{.fd = alarm.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, milliseconds) == 1;
}

TEST(BootClock, GoesOnAndIsOfThisBoot) {
  const BootTime before = boot_now();
  EXPECT_GT(before.count(), 0);
  EXPECT_GE(boot_now(), before);
  EXPECT_EQ(this_boot_id().size(), 36U);
  EXPECT_EQ(this_boot_id(), this_boot_id());
}

TEST(BootAlarm, RingsWhenItIsTimeAndNotBefore) {
  BootAlarm alarm;
  EXPECT_FALSE(rings(alarm, 0));
  alarm.set(boot_now() + std::chrono::milliseconds(30));
  EXPECT_TRUE(rings(alarm, 10000));
  EXPECT_TRUE(rings(alarm, 0));
  alarm.seen();
  EXPECT_FALSE(rings(alarm, 0));
  alarm.set(BootTime(0));  // long over
  EXPECT_TRUE(rings(alarm, 10000));
  alarm.set(boot_now() + std::chrono::hours(1));
  EXPECT_FALSE(rings(alarm, 0));
  alarm.set(std::nullopt);
  EXPECT_FALSE(rings(alarm, 0));
}

}  // namespace
}  // namespace berth
