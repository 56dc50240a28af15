// The cluster's time: Unix time that goes on as the machine does, whatever is done to its wall
// clock.
//
//   starts with the wall clock, then advances with CLOCK_BOOTTIME (time slept counts)
//   wall clock off by 5 s or less:  followed, by 1 % of the time that passes; never backwards
//   by more:  it was set. Not followed; adopted when it has stood for 10 minutes, or when told
//
// Whoever remembers moments moves them by what adopt() returns, so that lengths stay as they are.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/boot_clock.h"
#include "base/clock.h"

namespace berth {

/// The clocks of a machine.
class TimeSource {
 public:
  TimeSource() = default;
  TimeSource(const TimeSource&) = delete;
  TimeSource& operator=(const TimeSource&) = delete;
  virtual ~TimeSource() = default;

  /// Unix time, as somebody has set it.
  [[nodiscard]] virtual std::chrono::nanoseconds wall() const = 0;
  [[nodiscard]] virtual BootTime boot() const = 0;
  /// Equal numbers: boot() of the two goes on from the same start. 0 = not known.
  [[nodiscard]] virtual std::uint64_t boot_number() const = 0;
  /// Of CLOCK_MONOTONIC.
  [[nodiscard]] virtual Clock::Moment moment() const { return std::chrono::steady_clock::now(); }
};

/// This one's.
class MachineTime final : public TimeSource {
 public:
  [[nodiscard]] std::chrono::nanoseconds wall() const override;
  [[nodiscard]] BootTime boot() const override { return boot_now(); }
  [[nodiscard]] std::uint64_t boot_number() const override;
};

class ClusterClock final : public Clock {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  using Seconds = std::chrono::seconds;

  /// A wall clock that differs by more was set.
  static constexpr Seconds kFollowed{5};
  /// Of the time that passes, while a small difference is made up for.
  static constexpr int kFollowedPercent = 1;
  /// What was set is adopted when it has stood for so long.
  static constexpr std::chrono::minutes kStands{10};

  explicit ClusterClock(const TimeSource& source);

  /// What a later process needs to go on with the same time.
  struct Mark {
    std::uint64_t boot = 0;  // TimeSource::boot_number()
    Nanoseconds ahead{0};    // of the time since the machine started
    std::int64_t adopted = 0;
    friend bool operator==(const Mark&, const Mark&) = default;
  };
  [[nodiscard]] Mark mark() const;
  /// False when that was another boot: the time is the wall clock's. What was adopted is known
  /// nevertheless.
  bool resume(const Mark& mark);

  [[nodiscard]] std::int64_t seconds() const override;
  [[nodiscard]] std::chrono::nanoseconds until(std::int64_t seconds) const override;
  [[nodiscard]] Moment moment() const override { return source_.moment(); }

  enum class Seen {
    nothing,
    set,   // the wall clock was set, and not to what it was set to before
    back,  // it was, and is right again
  };
  /// Compares itself with the wall clock. Each change is returned once.
  Seen look();
  /// The wall clock is so far ahead (negative: behind) since it was set; nullopt: it is followed.
  [[nodiscard]] std::optional<Seconds> ahead() const;
  /// Until what was set has stood long enough; 0 = it has. nullopt: nothing was set.
  [[nodiscard]] std::optional<Seconds> adopts_in() const;
  /// The time is the wall clock's from now on: by so much later (negative: earlier) than before.
  Seconds adopt();
  /// All that was ever adopted: seconds() without it goes on evenly.
  [[nodiscard]] std::int64_t adopted() const;
  /// For tickets: a length is a length, also while a clock that was set is adopted.
  [[nodiscard]] std::int64_t even_seconds() const;

 private:
  /// Since `boot` it goes on evenly from `time`, and makes up for `behind`.
  struct Piece {
    BootTime boot{0};
    Nanoseconds time{0};
    Nanoseconds behind{0};
    [[nodiscard]] Nanoseconds at(BootTime boot) const;
  };
  struct Set {
    Nanoseconds ahead{0};
    BootTime since{0};
  };
  struct Reading {
    BootTime boot{0};
    Nanoseconds wall{0};
  };
  [[nodiscard]] Reading read() const;
  [[nodiscard]] Nanoseconds now() const;

  const TimeSource& source_;
  const std::uint64_t boot_number_;
  mutable std::mutex mutex_;
  Piece piece_;
  std::optional<Set> set_;
  std::int64_t adopted_ = 0;
};

}  // namespace berth
