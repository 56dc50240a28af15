// The controller's log: one line for each event, with the time, to standard error or a file. Lines
// of one process never mix: each is written by one call. What strangers wrote is escaped.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <string_view>

#include "base/line_limit.h"
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

  /// For what somebody else can cause as often as he likes: a source ("uid 1000", "10.0.0.7",
  /// "node n1") has a number of lines a minute, and those beyond are counted.
  ///     log.of(source).info("uid {} sent …", uid);
  class Source {
   public:
    template <class... T>
    void error(fmt::format_string<T...> text, T&&... values) {
      if (log_.may_write(name_)) log_.error(text, std::forward<T>(values)...);
    }
    template <class... T>
    void info(fmt::format_string<T...> text, T&&... values) {
      if (log_.level_ < LogLevel::info || !log_.may_write(name_)) return;
      log_.info(text, std::forward<T>(values)...);
    }

   private:
    friend class Log;
    Source(Log& log, std::string name) : log_(log), name_(std::move(name)) {}
    Log& log_;
    std::string name_;
  };
  Source of(std::string source) { return {*this, std::move(source)}; }
  [[nodiscard]] LineGate& lines() { return lines_; }
  /// Says how many lines were left out, where their minute is over.
  void tell_left_out(bool all = false);

 private:
  [[nodiscard]] bool may_write(std::string_view source);
  void write(std::string_view prefix, std::string_view text) const;

  LineGate lines_;
  int fd_ = 2;
  std::atomic<LogLevel> level_ = LogLevel::info;
};

}  // namespace berth::controller
