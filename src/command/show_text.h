// Times, durations and sizes as squeue, sinfo and sacct write them. All append to a text, so that a
// long listing costs no allocation for each cell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "request/request.h"

namespace berth::command {

/// SLURM_TIME_FORMAT.
struct TimeFormat {
  enum class Kind { standard, relative, pattern } kind = Kind::standard;
  std::string pattern;  // of strftime
};
TimeFormat time_format(const request::Environment& environment);

/// What all fields of one listing share.
struct Shown {
  std::int64_t now = 0;
  TimeFormat times;
  bool convert = true;               // "1G" instead of "1024M"
  std::size_t array_text_most = 64;  // SLURM_BITSTR_LEN; 0 = no limit
  bool expand_patterns = false;
  std::string_view cluster;
};

void append_number(std::string& out, std::int64_t value);
void append_unsigned(std::string& out, std::uint64_t value);

/// Local time "2026-11-15T08:24:48"; `unknown` when seconds is 0.
void append_time(std::string& out, std::int64_t seconds, const Shown& shown,
                 std::string_view unknown);
/// "Sun Nov 15 08:24:50 2026".
std::string date_line(std::int64_t seconds);

/// "0:05", "1:02:03", "1-00:00:00".
void append_run_time(std::string& out, std::int64_t seconds);
/// "00:00:05", "01:02:03", "1-00:00:00".
void append_clock(std::string& out, std::int64_t seconds);

/// "0", "1500M", "4G"; without conversion "4096M".
void append_memory(std::string& out, std::uint64_t mb, bool convert);

/// Exit code and signal of a status in wait(2) form: "1:0".
void append_exit(std::string& out, std::int32_t status);

/// `text`, or `missing` when it is empty.
void append_or(std::string& out, std::string_view text, std::string_view missing);

/// Comma-separated words, empty ones dropped.
std::vector<std::string> list_of(std::string_view text);
/// Whether one of them is the word.
bool holds(const std::vector<std::string>& list, std::string_view word);

}  // namespace berth::command
