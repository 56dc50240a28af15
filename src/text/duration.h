// Time limits: "min", "min:s", "h:m:s", "d-h", "d-h:m", "d-h:m:s", UNLIMITED/INFINITE, 0 and -1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::text {

struct TimeLimit {
  bool unlimited = false;
  std::uint32_t minutes = 0;  // rounded up to whole minutes
  friend bool operator==(const TimeLimit&, const TimeLimit&) = default;
};

/// nullopt when the text is not a time limit. "0" is kept as 0 minutes (callers know what it
/// means).
std::optional<TimeLimit> parse_time_limit(std::string_view s);

/// Seconds of one of the forms above but UNLIMITED; not rounded.
std::optional<std::uint64_t> parse_seconds(std::string_view s);

/// Seconds of one of the forms above, or of a number with a unit: "90s", "30m", "2h", "1d". Inner
/// unset: no limit ("0", UNLIMITED).
std::optional<std::optional<std::uint32_t>> parse_limit_in_seconds(std::string_view s);

/// For sentences: "90 seconds", "15 minutes", "2 hours 30 minutes".
std::string spoken_seconds(std::uint64_t seconds);

/// "01:00:00", "1-02:03:00", "UNLIMITED".
std::string format_minutes(std::optional<std::uint32_t> minutes);

/// --begin/--deadline forms: syntax only. On failure `position` is where parsing stopped (the
/// number in "Invalid time specification (pos=%d): %s").
bool valid_time_spec(std::string_view s, std::size_t& position);

}  // namespace berth::text
