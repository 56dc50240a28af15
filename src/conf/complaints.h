// What is wrong or worth saying about configuration files, each with its file and line. Errors are
// gathered, so that a user mends them in one go; both lists are bounded.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::conf {

struct Location {
  std::string file;
  int line = 0;  // from 1; 0 = the file as a whole
  friend bool operator==(const Location&, const Location&) = default;
};

/// "slurm.conf:12", or "slurm.conf" for the whole file.
std::string shown(const Location& at);
/// The user's text for a message: at most 60 bytes, control characters shown as '?'.
std::string shown(std::string_view text);

/// A value and where it was written.
template <class T>
struct Located {
  T value{};
  Location at;
};

/// Keys of one file that Slurm has and berth does not use.
struct UnusedKeys {
  std::string file;
  std::vector<std::string> keys;  // "SlurmUser (line 4)", in the order of the file
};

/// One line: "slurm.conf: 23 keys that Slurm has are not used by berth: SlurmctldHost (line 3), …".
/// Without `all` only the first few are named.
std::string shown(const UnusedKeys& unused, bool all);

class Complaints {
 public:
  static constexpr std::size_t kMaxErrors = 20;     // kept
  static constexpr std::size_t kMaxCounted = 1000;  // looked at
  static constexpr std::size_t kMaxWarnings = 100;
  static constexpr std::size_t kMaxUnused = 500;

  void error(const Location& at, std::string_view text);
  void warn(const Location& at, std::string_view text);
  /// As warn, but once for each `about`.
  void warn_once(const Location& at, std::string_view about, std::string_view text);
  /// A key that Slurm has and berth does not use; told once for each file and key.
  void unused(const Location& at, std::string_view key);

  /// How many errors and warnings there were so far, also those not kept.
  [[nodiscard]] std::size_t count() const {
    return errors_.size() + errors_left_out_ + warnings_.size() + warnings_left_out_;
  }
  [[nodiscard]] bool failed() const { return !errors_.empty(); }
  /// No more errors are kept or counted: reading on is useless.
  [[nodiscard]] bool full() const { return errors_.size() + errors_left_out_ >= kMaxCounted; }
  /// All errors as one. Only after failed().
  [[nodiscard]] Error as_error() const;
  /// All warnings, without the unused keys.
  [[nodiscard]] std::vector<std::string> warnings() const;
  /// What unused() was told, one entry for each file.
  [[nodiscard]] std::vector<UnusedKeys> unused_keys() const;

 private:
  struct Unused {
    std::string key;
    Location at;
  };
  std::vector<Message> errors_;
  std::size_t errors_left_out_ = 0;
  std::vector<std::string> warnings_;
  std::size_t warnings_left_out_ = 0;
  std::vector<Unused> unused_;
  std::set<std::string, std::less<>> said_;
};

}  // namespace berth::conf
