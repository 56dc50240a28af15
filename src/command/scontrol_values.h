// How scontrol writes times, spans, exit codes and what is missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "command/show_text.h"
#include "wire/info.pb.h"

namespace berth::command::scontrol {

/// How records are printed: one line each (-o), with details (-d), and the way of times.
struct Style {
  bool one_line = false;
  bool detail = false;
  TimeFormat times = {};
  std::int64_t now = 0;  // the controller's clock, for run times
};

/// A point in time, or `missing` ("Unknown", "None", "N/A") when it is 0.
std::string time_text(std::int64_t time, const Style& style, std::string_view missing = "Unknown");
/// "00:00:05", "1-02:03:04".
std::string seconds_text(std::int64_t seconds);
/// wait(2) form as "exit:signal".
std::string exit_text(std::int32_t status);
/// "(null)" when there is nothing.
std::string_view or_null(std::string_view text);
/// A number, or "*" when it is 0 (not given).
std::string or_star(std::uint32_t number);
/// "YES" and "NO" of partitions.
std::string_view yes_no(bool value);

/// Seconds a job has run, without the time it was suspended.
std::int64_t run_seconds(const wire::JobInfo& job, std::int64_t now);
/// The word of JobState=: the most telling flag, else the base state.
std::string_view state_word(const wire::JobInfo& job);

/// Collects "key=value" lines of one record and joins them as -o asks.
class Record {
 public:
  explicit Record(const Style& style) : one_line_(style.one_line) {}
  /// Escapes what strangers may have written: a line stays one.
  void line(std::string_view text);
  /// A line only when `value` is there.
  void maybe(std::string_view key, std::string_view value);
  /// The record with its end: an empty line, or one newline with -o.
  [[nodiscard]] std::string done() &&;

 private:
  bool one_line_;
  std::string text_;
};

}  // namespace berth::command::scontrol
