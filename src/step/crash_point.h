// Places where a test may kill a supervisor or an agent: BERTH_CRASH_AT=name[:n] in its environment
// ends the process with SIGKILL when the place is reached for the n-th time. What must hold after
// that is what must hold after any crash.
#pragma once

#include <string>
#include <string_view>

namespace berth::step {

class CrashPoints {
 public:
  CrashPoints() = default;
  /// Reads "name[:n]"; "" = never.
  explicit CrashPoints(std::string_view text);
  /// From the environment of this process.
  static CrashPoints from_environment();
  void reached(std::string_view name);

 private:
  std::string name_;
  long left_ = 0;
};

}  // namespace berth::step
