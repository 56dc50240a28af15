#include "command/show_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "text/size.h"
#include "text/words.h"

namespace berth::command {
namespace {

void append_two(std::string& out, std::int64_t value) {
  if (value < 10) out += '0';
  append_number(out, value);
}

void append_formatted(std::string& out, const std::tm& parts, const char* pattern) {
  std::array<char, 256> buffer;
  out.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), pattern, &parts));
}

/// How far away a time is decides how much of it is written.
const char* relative_pattern(const std::tm& parts, const std::tm& today) {
  if (parts.tm_year != today.tm_year) return "%-d %b %Y";
  const int days = parts.tm_yday - today.tm_yday;
  if (days == 0) return "%H:%M:%S";
  if (days == -1) return "Ystday %H:%M";
  if (days == 1) return "Tomorr %H:%M";
  if (days > -7 && days < 7) return "%a %H:%M";
  return "%-d %b %H:%M";
}

}  // namespace

TimeFormat time_format(const request::Environment& environment) {
  const auto at = environment.find("SLURM_TIME_FORMAT");
  if (at == environment.end() || at->second.empty() || at->second == "standard") return {};
  if (at->second == "relative") return {TimeFormat::Kind::relative, {}};
  return {TimeFormat::Kind::pattern, at->second};
}

void append_number(std::string& out, std::int64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

void append_unsigned(std::string& out, std::uint64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

void append_time(std::string& out, std::int64_t seconds, const Shown& shown,
                 std::string_view unknown) {
  if (seconds == 0) {
    out += unknown;
    return;
  }
  const std::time_t at = seconds;
  std::tm parts{};
  localtime_r(&at, &parts);
  if (shown.times.kind == TimeFormat::Kind::standard) {
    append_number(out, parts.tm_year + 1900);
    out += '-';
    append_two(out, parts.tm_mon + 1);
    out += '-';
    append_two(out, parts.tm_mday);
    out += 'T';
    append_two(out, parts.tm_hour);
    out += ':';
    append_two(out, parts.tm_min);
    out += ':';
    append_two(out, parts.tm_sec);
    return;
  }
  if (shown.times.kind == TimeFormat::Kind::pattern) {
    append_formatted(out, parts, shown.times.pattern.c_str());
    return;
  }
  const std::time_t now = shown.now;
  std::tm today{};
  localtime_r(&now, &today);
  append_formatted(out, parts, relative_pattern(parts, today));
}

std::string date_line(std::int64_t seconds) {
  const std::time_t at = seconds;
  std::tm parts{};
  localtime_r(&at, &parts);
  std::string out;
  append_formatted(out, parts, "%a %b %d %H:%M:%S %Y");
  return out;
}

void append_run_time(std::string& out, std::int64_t seconds) {
  if (seconds < 0) seconds = 0;
  const std::int64_t days = seconds / 86400;
  const std::int64_t hours = seconds / 3600 % 24;
  if (days > 0) {
    append_number(out, days);
    out += '-';
    append_two(out, hours);
    out += ':';
    append_two(out, seconds / 60 % 60);
  } else if (hours > 0) {
    append_number(out, hours);
    out += ':';
    append_two(out, seconds / 60 % 60);
  } else {
    append_number(out, seconds / 60);
  }
  out += ':';
  append_two(out, seconds % 60);
}

void append_clock(std::string& out, std::int64_t seconds) {
  if (seconds < 0) seconds = 0;
  if (seconds >= 86400) {
    append_number(out, seconds / 86400);
    out += '-';
  }
  append_two(out, seconds / 3600 % 24);
  out += ':';
  append_two(out, seconds / 60 % 60);
  out += ':';
  append_two(out, seconds % 60);
}

void append_memory(std::string& out, std::uint64_t mb, bool convert) {
  if (mb == 0) {
    out += '0';
  } else if (convert) {
    out += text::format_mb(mb);
  } else {
    append_unsigned(out, mb);
    out += 'M';
  }
}

void append_exit(std::string& out, std::int32_t status) {
  append_number(out, (status >> 8) & 0xff);
  out += ':';
  append_number(out, status & 0x7f);
}

void append_or(std::string& out, std::string_view text, std::string_view missing) {
  out += text.empty() ? missing : text;
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view word : text::split(text, ',')) {
    const std::string_view trimmed = text::trim(word);
    if (!trimmed.empty()) out.emplace_back(trimmed);
  }
  return out;
}

bool holds(const std::vector<std::string>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

}  // namespace berth::command
