// The time of a rehearsal, and all that is to happen in it: events by their moment, those of the
// same moment in the order in which they were written down. Nothing else makes time pass.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/cluster_clock.h"

namespace berth::rehearsal {

/// Since the beginning of the rehearsal, plus kBeginning.
using Moment = std::chrono::nanoseconds;

class Agenda {
 public:
  using Event = std::pair<Moment, std::uint64_t>;
  static constexpr Event kNone{};

  [[nodiscard]] Moment now() const { return now_; }
  Event at(Moment when, std::move_only_function<void()> what) {
    const Event event{std::max(when, now_), ++count_};
    events_.emplace(event, std::move(what));
    return event;
  }
  Event after(Moment wait, std::move_only_function<void()> what) {
    return at(now_ + wait, std::move(what));
  }
  void cancel(Event& event) { events_.erase(std::exchange(event, kNone)); }
  /// False when nothing is left that begins before `until`.
  bool step(Moment until) {
    const auto first = events_.begin();
    if (first == events_.end() || first->first.first >= until) {
      now_ = std::max(now_, until);
      return false;
    }
    now_ = first->first.first;
    const auto node = events_.extract(first);
    ++done_;
    node.mapped()();
    return true;
  }
  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  // Not 0: for a daemon the machine has been up for a while.
  Moment now_ = std::chrono::seconds(1000);
  std::uint64_t count_ = 0;
  std::uint64_t done_ = 0;
  std::map<Event, std::move_only_function<void()>> events_;
};

/// Unix time when a rehearsal begins.
inline constexpr std::int64_t kUnix = 1'800'000'000;

/// The clocks of the controller's machine in a rehearsal.
class AgendaTime final : public TimeSource {
 public:
  explicit AgendaTime(const Agenda& agenda) : agenda_(agenda) {}

  [[nodiscard]] std::chrono::nanoseconds wall() const override {
    return std::chrono::seconds(kUnix) + agenda_.now();
  }
  [[nodiscard]] BootTime boot() const override { return agenda_.now(); }
  [[nodiscard]] std::uint64_t boot_number() const override { return 1; }
  [[nodiscard]] Clock::Moment moment() const override {
    return Clock::Moment(std::chrono::duration_cast<Clock::Moment::duration>(agenda_.now()));
  }

 private:
  const Agenda& agenda_;
};

/// The clock of a node's machine in a rehearsal.
class AgendaClock final : public Clock {
 public:
  explicit AgendaClock(const Agenda& agenda) : agenda_(agenda) {}

  [[nodiscard]] std::int64_t seconds() const override {
    return kUnix + std::chrono::duration_cast<std::chrono::seconds>(agenda_.now()).count();
  }
  [[nodiscard]] std::chrono::nanoseconds until(std::int64_t seconds) const override {
    return std::chrono::seconds(seconds - kUnix) - agenda_.now();
  }
  [[nodiscard]] Moment moment() const override {
    return Moment(std::chrono::duration_cast<Moment::duration>(agenda_.now()));
  }

 private:
  const Agenda& agenda_;
};

}  // namespace berth::rehearsal
