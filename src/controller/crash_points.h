// Places where a test may kill the controller: BERTH_CRASH_AT=name[:n] in its environment ends the
// process with SIGKILL when the place is reached for the n-th time. What must hold after that is
// what must hold after any crash.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::controller {

inline constexpr std::array<std::string_view, 9> kCrashPoints = {
    "before_commit",  // a turn was applied in memory, nothing of it is stored
    "after_commit",   // it is stored, nobody was told
    "before_submit_reply", "after_submit_reply",
    "before_begin_job",  // the start is stored, no node knows of it
    "after_begin_job",     "before_end_job",
    "before_forget",  // an end is stored, the node was not told so
    "after_epoch",    // at start: the epoch was raised, no socket is open
};

class CrashPoints {
 public:
  CrashPoints() = default;
  /// "name[:n]"; "" = never.
  static Result<void> read(std::string_view text, CrashPoints& out);
  void reached(std::string_view name);

 private:
  std::string name_;
  std::atomic<std::int64_t> left_{0};
};

}  // namespace berth::controller
