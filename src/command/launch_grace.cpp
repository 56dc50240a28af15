// What launch_grace.h promises.
#include "command/launch_grace.h"

#include <algorithm>

namespace berth::command {

void FailureGrace::begin(Moment now, std::chrono::seconds length) {
  if (until_ || left_) return;
  if (paused_.empty()) {
    until_ = now + length;
  } else {
    left_ = length;
  }
}

void FailureGrace::pause(const std::string& node, Moment now) {
  paused_.insert(node);
  if (!until_) return;
  left_ = std::max(*until_ - now, Moment::duration::zero());
  until_.reset();
}

void FailureGrace::go_on(const std::string& node, Moment now) {
  paused_.erase(node);
  if (!paused_.empty() || !left_) return;
  until_ = now + *left_;
  left_.reset();
}

void FailureGrace::forget() {
  until_.reset();
  left_.reset();
}

}  // namespace berth::command
