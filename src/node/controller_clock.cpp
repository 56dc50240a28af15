// What controller_clock.h promises.
#include "node/controller_clock.h"

namespace berth::node {

void ControllerClock::answered(std::uint64_t number, const Told& told, Moment at) {
  const auto question = questions_.find(number);
  if (question == questions_.end()) return;
  const Moment left = question->second;
  // Answers come in the order of the questions.
  questions_.erase(questions_.begin(), std::next(question));
  if (told.even_time == 0) return;
  const Seconds even(told.even_time);
  // It was written down between the question and its answer, in whole seconds.
  known_ =
      Known{.least = even - at, .most = even + Seconds(1) - left, .adopted = Seconds(told.adopted)};
}

std::optional<std::int64_t> ControllerClock::even_seconds(Moment now) const {
  if (!known_) return std::nullopt;
  return std::chrono::floor<Seconds>(known_->least + now).count();
}

std::int64_t ControllerClock::ahead(std::chrono::nanoseconds wall, Moment now) const {
  if (!known_) return 0;
  const Moment earliest = known_->least + known_->adopted + now;
  const Moment latest = known_->most + known_->adopted + now;
  Moment ahead{0};
  if (wall > latest) ahead = wall - latest;
  if (wall < earliest) ahead = wall - earliest;
  if (ahead <= kRight && -ahead <= kRight) return 0;
  return std::chrono::round<Seconds>(ahead).count();
}

}  // namespace berth::node
