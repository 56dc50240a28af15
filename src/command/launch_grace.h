// How long the other tasks of a step have when one has failed. The clock stands still while the
// step is stopped on a node: who is suspended cannot end in time.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

namespace berth::command {

class FailureGrace {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  void begin(Moment now, std::chrono::seconds length);
  void pause(const std::string& node, Moment now);
  void go_on(const std::string& node, Moment now);
  /// When it is over, as far as is known now; none: it has not begun, or its clock stands still.
  [[nodiscard]] std::optional<Moment> until() const { return until_; }
  void forget();

 private:
  std::set<std::string> paused_;
  std::optional<Moment> until_;
  std::optional<Moment::duration> left_;  // while it stands still
};

}  // namespace berth::command
