#include "schedule/shapes.h"

#include "schedule/calendar.h"

namespace berth::schedule {

Shape& Shapes::of(const job::State& state, const job::Job& job) {
  std::unique_ptr<Shape>& shape = shapes_[job.what->shape];
  if (!shape) {
    if (shapes_.size() > kMost) {
      shapes_.clear();
      return of(state, job);
    }
    // Where nodes are switched off, those that are up come first.
    if (!equal_weights_) {
      equal_weights_ = state.cluster().equal_weights() && !state.policy().power.enabled;
    }
    shape = std::make_unique<Shape>(state.cluster(), job.what, *equal_weights_);
  }
  return *shape;
}

job::Time seconds_of(const job::Job& job, const place::Prepared& prepared) {
  const std::optional<std::uint32_t> minutes =
      job.time_limit_decided ? job.time_limit_minutes : prepared.time_limit_minutes();
  return minutes ? job::Time{*minutes} * 60 : kYear;
}

}  // namespace berth::schedule
