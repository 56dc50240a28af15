// What duration.h promises.
#include "text/duration.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "text/number.h"
#include "text/words.h"

namespace berth::text {
namespace {

constexpr std::uint64_t kMaxMinutes =
    UINT32_MAX - 3;                              // the last three values mean "unset" in Slurm
constexpr std::uint64_t kMaxField = UINT32_MAX;  // keeps sums of seconds far from overflow

std::optional<TimeLimit> from_seconds(std::uint64_t seconds) {
  const std::uint64_t minutes = seconds / 60 + (seconds % 60 != 0 ? 1 : 0);
  if (minutes > kMaxMinutes) return std::nullopt;
  return TimeLimit{.unlimited = false, .minutes = static_cast<std::uint32_t>(minutes)};
}

std::string counted(std::uint64_t n, std::string_view unit) {
  return fmt::format("{} {}{}", n, unit, n == 1 ? "" : "s");
}

}  // namespace

std::optional<std::uint64_t> parse_seconds(std::string_view s) {
  std::uint64_t days = 0;
  const std::size_t dash = s.find('-');
  const bool has_days = dash != std::string_view::npos;
  if (has_days) {
    const auto number = parse_number(s.substr(0, dash), kMaxField);
    if (!number) return std::nullopt;
    days = *number;
    s.remove_prefix(dash + 1);
  }
  std::array<std::uint64_t, 3> fields{};
  std::size_t count = 0;
  for (bool more = true; more;) {
    const std::size_t colon = s.find(':');
    const auto number = parse_number(s.substr(0, colon), kMaxField);
    if (!number || count == fields.size()) return std::nullopt;
    fields[count++] = *number;
    more = colon != std::string_view::npos;
    if (more) s.remove_prefix(colon + 1);
  }
  // After days the first field is hours; without them one or two fields are minutes[:seconds].
  if (has_days || count == 3) return ((days * 24 + fields[0]) * 60 + fields[1]) * 60 + fields[2];
  return fields[0] * 60 + fields[1];
}

std::optional<TimeLimit> parse_time_limit(std::string_view s) {
  if (s == "-1" || equal_ignoring_case(s, "unlimited") || equal_ignoring_case(s, "infinite")) {
    return TimeLimit{.unlimited = true, .minutes = 0};
  }
  const auto seconds = parse_seconds(s);
  return seconds ? from_seconds(*seconds) : std::nullopt;
}

std::optional<std::optional<std::uint32_t>> parse_limit_in_seconds(std::string_view s) {
  const auto plain = parse_time_limit(s);
  if (plain && plain->unlimited) return std::optional<std::uint32_t>();
  std::uint64_t unit = 0;
  const char last = s.empty() ? '\0' : s.back();
  for (const auto& [letter, length] :
       {std::pair('s', 1U), std::pair('m', 60U), std::pair('h', 3600U), std::pair('d', 86400U)}) {
    if (last == letter) unit = length;
  }
  auto seconds = unit == 0 ? parse_seconds(s) : parse_number(s.substr(0, s.size() - 1), kMaxField);
  if (!seconds) return std::nullopt;
  if (unit > 0) *seconds *= unit;
  if (*seconds > kMaxField) return std::nullopt;
  if (*seconds == 0) return std::optional<std::uint32_t>();
  return static_cast<std::uint32_t>(*seconds);
}

std::string spoken_seconds(std::uint64_t seconds) {
  constexpr std::uint64_t kExact = 600;  // nobody counts the seconds of a longer time
  if (seconds < 120) return counted(seconds, "second");
  std::uint64_t first = seconds / 60;
  std::uint64_t second = seconds < kExact ? seconds % 60 : 0;
  if (first < 120) {
    const std::string minutes = counted(first, "minute");
    return second == 0 ? minutes : minutes + ' ' + counted(second, "second");
  }
  second = first % 60;
  first /= 60;
  const std::string hours = counted(first, "hour");
  return second == 0 ? hours : hours + ' ' + counted(second, "minute");
}

std::string format_minutes(std::optional<std::uint32_t> minutes) {
  if (!minutes) return "UNLIMITED";
  const std::uint32_t days = *minutes / (24 * 60);
  const std::uint32_t hours = *minutes / 60 % 24;
  if (days > 0) return fmt::format("{}-{:02}:{:02}:00", days, hours, *minutes % 60);
  return fmt::format("{:02}:{:02}:00", hours, *minutes % 60);
}

}  // namespace berth::text
