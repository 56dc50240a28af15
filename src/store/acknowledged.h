// How far the store was acknowledged: a small file beside it, `berth.acked`.
//
// SQLite believes its log up to the first frame that does not fit. After a crash that is right; but
// a log that was damaged later looks the same, and then commits that somebody was told of are gone
// without a word. So the number of the last commit is written here after the log was synced and
// before anybody hears of it; a store with fewer commits is not used.
//
// Writing it costs no sync: what a killed process wrote stays. After a power cut it may be some
// moments old, so that it asks for less than there was, never for more; sync() keeps that short.
//
// There are two places, written in turns: one of them is whole, whatever happens to the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace berth::store {

struct Acknowledged {
  std::uint64_t commits = 0;
  std::uint64_t epoch = 0;
  std::uint64_t next_job_id = 0;
  friend bool operator==(const Acknowledged&, const Acknowledged&) = default;
};

/// An error when `has` is less than `told`; in words of an administrator.
Result<void> compare_acknowledged(const std::string& directory, const Acknowledged& has,
                                  const Acknowledged& told);

inline constexpr const char* kAcceptHint =
    "`berthctld --accept-loss` takes the store as it is; no job id is handed out again";

class AcknowledgedFile {
 public:
  static std::string path(const std::string& directory) { return directory + "/berth.acked"; }
  /// What is there; nullopt = there is no such file, or nothing in it yet. An error when nothing in
  /// it is whole.
  static Result<std::optional<Acknowledged>> read(const std::string& directory);
  /// For writing; makes the file.
  Result<void> open(const std::string& directory);
  /// Written when it returns, not synced.
  void note(const Acknowledged& now);
  /// Synced, if something was noted since. Any thread.
  void sync();

 private:
  Fd file_;
  std::uint64_t turn_ = 0;
  std::atomic<bool> unsynced_ = false;
};

}  // namespace berth::store
