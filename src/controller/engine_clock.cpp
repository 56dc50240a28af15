// What the state thread does when the wall clock of its machine is set.
#include <fmt/format.h>

#include <cstdlib>

#include "controller/engine.h"

namespace berth::controller {
namespace {

/// A clock that was set is noticed within this.
constexpr std::chrono::seconds kLook{10};
/// What the store has may differ by so much: a small difference is followed a little at a time.
constexpr std::chrono::nanoseconds kKnown = std::chrono::seconds(1);

std::string set_words(std::chrono::seconds ahead) {
  return fmt::format("{} s {}", std::abs(ahead.count()), ahead.count() > 0 ? "forward" : "back");
}

}  // namespace

void Engine::look_at_clock(Turn& turn) {
  next_clock_look_ = turn.moment + kLook;
  const bool just_started = clock_just_started_;
  switch (clock_.look()) {
    case ClusterClock::Seen::nothing:
      break;
    case ClusterClock::Seen::set:
      if (just_started) break;
      log_.error(
          "the wall clock was set {}: time limits and all other lengths go on as before; the new "
          "time is adopted when it has stood for 10 minutes, or by `scontrol reconfigure`",
          set_words(*clock_.ahead()));
      break;
    case ClusterClock::Seen::back:
      log_.info("the wall clock is as it was before it was set");
      break;
  }
  if (degraded_) return;  // what moves has to be stored
  clock_just_started_ = false;
  if (just_started) adopt_clock_if_set(turn, "it was set while no controller ran");
  if (clock_.adopts_in() == std::chrono::seconds(0)) {
    adopt_clock(turn, "it has stood for 10 minutes");
  }
}

void Engine::adopt_clock_if_set(Turn& turn, std::string_view why) {
  clock_.look();
  if (clock_.ahead()) adopt_clock(turn, why);
}

void Engine::adopt_clock(Turn& turn, std::string_view why) {
  const std::chrono::seconds by = clock_.adopt();
  turn.now = clock_.seconds();
  state_->shift(by.count(), turn.now);
  figures_.shift(by.count());
  scheduler_ = std::make_unique<schedule::Scheduler>();  // it has plans of the time before
  in_a_pass_ = false;
  all_changed_ = all_jobs_changed_ = true;
  log_.info(
      "the time of the wall clock, which was set {}, is adopted ({}): jobs keep the time left",
      set_words(by), why);
}

std::optional<store::ClockMark> Engine::clock_mark() const {
  const ClusterClock::Mark now = clock_.mark();
  const store::ClockMark& known = store_.clock();
  const auto moved = now.ahead - std::chrono::nanoseconds(known.ahead_nanoseconds);
  if (now.boot == known.boot && now.adopted == known.adopted && moved < kKnown && -moved < kKnown) {
    return std::nullopt;
  }
  return store::ClockMark{
      .boot = now.boot, .ahead_nanoseconds = now.ahead.count(), .adopted = now.adopted};
}

}  // namespace berth::controller
