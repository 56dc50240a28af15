// Time since the machine started, with the time it slept (CLOCK_BOOTTIME): the same for all its
// processes, and nobody sets it. Of another boot it says nothing.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"

namespace berth {

using BootTime = std::chrono::nanoseconds;

BootTime boot_now();
/// Another one after each start of the machine; "unknown" where the kernel does not tell.
std::string this_boot_id();

/// Becomes readable at a moment of that clock, also when the machine slept meanwhile: for poll(2).
class BootAlarm {
 public:
  BootAlarm();
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// nullopt: not any more. A moment that is over: at once.
  void set(std::optional<BootTime> when);
  /// It rang, and has been seen to.
  void seen();

 private:
  Fd fd_;
};

}  // namespace berth
