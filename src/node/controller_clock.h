// What time it is for the controller, as its answers told; so that nothing is decided by how the
// wall clock of this machine is set. There is no clock in here.
//
// The controller tells even seconds, which go on evenly and by which tickets expire, and by how
// much the cluster's time is ahead of them (base/cluster_clock.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

namespace berth::node {

class ControllerClock {
 public:
  /// Since the machine started, with the time it slept (base/boot_clock.h).
  using Moment = std::chrono::nanoseconds;
  using Seconds = std::chrono::seconds;

  /// What comes with an answer.
  struct Told {
    std::int64_t even_time = 0;  // 0 = an older controller: nothing
    std::int64_t adopted = 0;
  };

  /// A wall clock that differs by less is right.
  static constexpr Seconds kRight{5};

  /// A question leaves. Numbers grow.
  void asked(std::uint64_t number, Moment at) { questions_.emplace(number, at); }
  /// Its answer has come.
  void answered(std::uint64_t number, const Told& told, Moment at);
  /// The connection broke: what was asked on it is never answered.
  void forget_questions() { questions_.clear(); }

  /// Tickets that expire before that have expired; nullopt: no controller has ever told.
  [[nodiscard]] std::optional<std::int64_t> even_seconds(Moment now) const;
  /// So far ahead of the cluster's time is a wall clock that shows `wall`, negative: behind. 0: it
  /// is right, or as right as can be told.
  [[nodiscard]] std::int64_t ahead(std::chrono::nanoseconds wall, Moment now) const;

 private:
  struct Known {
    // Even time is that much ahead of ours, at least and at most.
    Moment least{0};
    Moment most{0};
    Seconds adopted{0};
  };
  std::optional<Known> known_;
  std::map<std::uint64_t, Moment> questions_;  // that were not answered yet
};

}  // namespace berth::node
