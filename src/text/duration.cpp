// What duration.h promises.
#include "text/duration.h"

#include <array>

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

std::string format_minutes(std::optional<std::uint32_t> minutes) {
  if (!minutes) return "UNLIMITED";
  const std::uint32_t days = *minutes / (24 * 60);
  const std::uint32_t hours = *minutes / 60 % 24;
  if (days > 0) return fmt::format("{}-{:02}:{:02}:00", days, hours, *minutes % 60);
  return fmt::format("{:02}:{:02}:00", hours, *minutes % 60);
}

}  // namespace berth::text
