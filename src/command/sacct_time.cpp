#include "command/sacct_time.h"

#include <array>
#include <ctime>
#include <string>
#include <vector>

#include "text/number.h"
#include "text/words.h"

namespace berth::command {
namespace {

std::tm local(std::int64_t when) {
  const std::time_t at = when;
  std::tm parts{};
  localtime_r(&at, &parts);
  return parts;
}

std::int64_t seconds_of(std::tm parts) {
  parts.tm_isdst = -1;
  return std::mktime(&parts);
}

std::optional<int> number(std::string_view text, int least, int most) {
  const auto value = text::parse_number(text, static_cast<std::uint64_t>(most));
  if (!value || static_cast<int>(*value) < least) return std::nullopt;
  return static_cast<int>(*value);
}

/// "8:30", "08:30:15", "8:30pm".
bool read_clock(std::string_view text, std::tm& out) {
  int add = 0;
  const std::string lower = text::to_lower(text::trim(text));
  std::string_view rest = lower;
  const bool afternoon = rest.ends_with("pm");
  const bool morning = rest.ends_with("am");
  if (afternoon || morning) rest = text::trim(rest.substr(0, rest.size() - 2));
  if (rest == "midnight") rest = "00:00";
  if (rest == "noon") rest = "12:00";
  if (rest == "fika") rest = "15:00";
  if (rest == "teatime") rest = "16:00";
  const std::vector<std::string_view> parts = text::split(rest, ':');
  if (parts.size() < 2 || parts.size() > 3) return false;
  const auto hour = number(parts[0], 0, 23);
  const auto minute = number(parts[1], 0, 59);
  const auto second = parts.size() == 3 ? number(parts[2].substr(0, parts[2].find('.')), 0, 59)
                                        : std::optional<int>(0);
  if (!hour || !minute || !second) return false;
  if (afternoon && *hour < 12) add = 12;
  if (morning && *hour == 12) add = -12;
  out.tm_hour = *hour + add;
  out.tm_min = *minute;
  out.tm_sec = *second;
  return true;
}

/// "2026-11-15", "11/15", "11/15/26", "11.15.26".
bool read_date(std::string_view text, std::tm& out) {
  const char separator = text.find('-') != text.npos   ? '-'
                         : text.find('/') != text.npos ? '/'
                                                       : '.';
  const std::vector<std::string_view> parts = text::split(text, separator);
  if (separator == '-') {
    if (parts.size() != 3) return false;
    const auto year = number(parts[0], 1970, 9999);
    const auto month = number(parts[1], 1, 12);
    const auto day = number(parts[2], 1, 31);
    if (!year || !month || !day) return false;
    out.tm_year = *year - 1900;
    out.tm_mon = *month - 1;
    out.tm_mday = *day;
    return true;
  }
  if (parts.size() < 2 || parts.size() > 3) return false;
  const auto month = number(parts[0], 1, 12);
  const auto day = number(parts[1], 1, 31);
  if (!month || !day) return false;
  out.tm_mon = *month - 1;
  out.tm_mday = *day;
  if (parts.size() == 3) {
    const auto year = number(parts[2], 0, 9999);
    if (!year) return false;
    out.tm_year = *year < 100 ? *year + 100 : *year - 1900;
  }
  return true;
}

/// "+2hours", "-30" (seconds), "-1week".
std::optional<std::int64_t> read_offset(std::string_view text) {
  if (text.size() < 2 || (text.front() != '+' && text.front() != '-')) return std::nullopt;
  std::size_t digits = 1;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const auto count = text::parse_number(text.substr(1, digits - 1), 1'000'000'000);
  if (!count) return std::nullopt;
  const std::string unit = text::to_lower(text::trim(text.substr(digits)));
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits = {
      {{"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}, {"weeks", 604800}}};
  for (const auto& [name, length] : kUnits) {
    if (unit.empty() || name.starts_with(unit)) {
      const auto value = static_cast<std::int64_t>(*count) * length;
      return text.front() == '-' ? -value : value;
    }
  }
  return std::nullopt;
}

}  // namespace

std::int64_t midnight_before(std::int64_t now) {
  std::tm parts = local(now);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  return seconds_of(parts);
}

std::optional<std::int64_t> parse_when(std::string_view text, std::int64_t now) {
  const std::string lower = text::to_lower(text::trim(text));
  if (lower == "now") return now;
  if (lower == "today") return midnight_before(now);
  if (lower == "tomorrow") return midnight_before(now) + 86400;
  if (lower == "yesterday") return midnight_before(now - 86400);
  if (lower.starts_with("now")) {
    const auto offset = read_offset(std::string_view(lower).substr(3));
    return offset ? std::optional(now + *offset) : std::nullopt;
  }
  std::tm parts = local(now);
  if (read_clock(lower, parts)) return seconds_of(parts);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  // A date, then perhaps 'T' or '-' or a blank and a time of day.
  std::size_t end = lower.find_first_of("t ");
  if (end == lower.npos) {
    const std::size_t last = lower.rfind('-');
    if (last != lower.npos && lower.find(':', last) != lower.npos) end = last;
  }
  if (!read_date(std::string_view(lower).substr(0, end), parts)) return std::nullopt;
  if (end != lower.npos && !read_clock(std::string_view(lower).substr(end + 1), parts)) {
    return std::nullopt;
  }
  return seconds_of(parts);
}

}  // namespace berth::command
