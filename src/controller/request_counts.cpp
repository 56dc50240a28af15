#include "controller/request_counts.h"

namespace berth::controller {

void RequestCounts::count(wire::Kind kind, std::uint32_t uid, std::uint64_t microseconds) {
  const auto add = [&](RequestFigures& figures) {
    ++figures.count;
    figures.microseconds += microseconds;
  };
  const std::lock_guard lock(mutex_);
  add(counts_.kinds[kind]);
  if (counts_.users.size() < kMostUsers || counts_.users.contains(uid)) add(counts_.users[uid]);
}

RequestCounts::Counts RequestCounts::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void RequestCounts::reset() {
  const std::lock_guard lock(mutex_);
  counts_ = {};
}

}  // namespace berth::controller
