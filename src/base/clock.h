// What time it is, for a daemon. One interface, so that the rules of time can be driven by a test.
#pragma once

#include <chrono>
#include <cstdint>

namespace berth {

class Clock {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Unix time, as it is stored and shown.
  [[nodiscard]] virtual std::int64_t seconds() const = 0;
  /// How long until that second of Unix time begins; negative where it has begun.
  [[nodiscard]] virtual std::chrono::nanoseconds until(std::int64_t seconds) const = 0;
  /// For lengths of time within one process: it never jumps.
  [[nodiscard]] virtual Moment moment() const = 0;
};

}  // namespace berth
