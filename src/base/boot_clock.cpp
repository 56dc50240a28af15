// What boot_clock.h promises.
#include "base/boot_clock.h"

#include <fcntl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace berth {
namespace {

timespec as_timespec(BootTime when) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
  return {.tv_sec = seconds.count(), .tv_nsec = (when - seconds).count()};
}

}  // namespace

BootTime boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::string this_boot_id() {
  const Fd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char bytes[64];
  const ssize_t n = file ? ::read(file.get(), bytes, sizeof bytes) : 0;
  std::string id(bytes, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  std::erase(id, '\n');
  return id.empty() ? "unknown" : id;
}

BootAlarm::BootAlarm() : fd_(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {}

void BootAlarm::set(std::optional<BootTime> when) {
  itimerspec wanted{};  // all 0: off
  if (when) wanted.it_value = as_timespec(std::max(*when, BootTime(1)));
  ::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &wanted, nullptr);
}

void BootAlarm::seen() {
  std::uint64_t times = 0;
  [[maybe_unused]] const ssize_t n = ::read(fd_.get(), &times, sizeof times);
}

}  // namespace berth
