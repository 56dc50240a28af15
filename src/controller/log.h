// The controller's log: one line for each event, with the time, to standard error or a file. Lines
// of one process never mix: each is written by one call.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::controller {

enum class LogLevel { error, info, debug };

/// "quiet", "fatal", "error" → error; "info", "verbose" → info; "debug" … "debug5" → debug; also
/// the numbers 0–9 of SlurmctldDebug. Anything else is refused.
Result<LogLevel> log_level(std::string_view text);

class Log {
 public:
  /// Writes to standard error until open() was called.
  Log() = default;
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  Result<void> open(const std::string& path);
  void set_level(LogLevel level) { level_ = level; }
  [[nodiscard]] bool debugging() const { return level_ == LogLevel::debug; }

  template <class... T>
  void error(fmt::format_string<T...> text, T&&... values) {
    write("error: ", fmt::format(text, std::forward<T>(values)...));
  }
  template <class... T>
  void info(fmt::format_string<T...> text, T&&... values) {
    if (level_ >= LogLevel::info) write("", fmt::format(text, std::forward<T>(values)...));
  }
  template <class... T>
  void debug(fmt::format_string<T...> text, T&&... values) {
    if (level_ >= LogLevel::debug) {
      write("debug: ", fmt::format(text, std::forward<T>(values)...));
    }
  }

 private:
  void write(std::string_view prefix, std::string_view text) const;

  int fd_ = 2;
  std::atomic<LogLevel> level_ = LogLevel::info;
};

}  // namespace berth::controller
