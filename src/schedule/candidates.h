// Nodes by the moment from which a job could use them. A job needs so many of them; those that come
// later than these are far, and kept unsorted and unchecked: mostly nobody asks for them.
#pragma once

#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "schedule/calendar.h"

namespace berth::schedule {

class Candidates {
 public:
  explicit Candidates(std::size_t needed) : needed_(needed) {}

  /// True when as many as are needed come before.
  [[nodiscard]] bool is_far(Time at) const { return at > bound_; }
  [[nodiscard]] Time bound() const { return bound_; }
  void add(Time at, NodeIndex node);

  [[nodiscard]] bool none_near() const { return near_.empty(); }
  /// The first moment of those that are near.
  [[nodiscard]] Time next() const { return near_.top().first; }
  /// Those of up to this moment.
  void take(Time moment, std::vector<NodeIndex>& out);
  /// Called before next(): when the near ones did not do, the far ones are looked at too, as far as
  /// they are `usable`.
  template <class Usable>
  void settle(const Usable& usable) {
    if (bound_ == kNone || (!near_.empty() && !is_far(near_.top().first))) return;
    bound_ = kNone;
    bounded_ = false;
    for (const From& one : std::exchange(far_, {})) {
      if (usable(one.second)) near_.push(one);
    }
  }

 private:
  static constexpr Time kNone = std::numeric_limits<Time>::max();
  using From = std::pair<Time, NodeIndex>;

  std::size_t needed_;
  bool bounded_ = true;
  Time bound_ = kNone;
  std::priority_queue<Time> nearest_;  // the moments of as many as are needed
  std::priority_queue<From, std::vector<From>, std::greater<>> near_;
  std::vector<From> far_;
};

inline void Candidates::add(Time at, NodeIndex node) {
  if (is_far(at)) {
    far_.emplace_back(at, node);
    return;
  }
  near_.emplace(at, node);
  if (!bounded_) return;
  nearest_.push(at);
  if (nearest_.size() > needed_) nearest_.pop();
  if (nearest_.size() == needed_) bound_ = nearest_.top();
}

inline void Candidates::take(Time moment, std::vector<NodeIndex>& out) {
  for (; !near_.empty() && near_.top().first <= moment; near_.pop()) {
    out.push_back(near_.top().second);
  }
}

}  // namespace berth::schedule
