// Times of -S and -E: "2026-11-15T08:00", "11/15", "08:30", "now-2hours", "midnight", …
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::command {

/// Unix seconds in local time; nullopt when it is no time.
std::optional<std::int64_t> parse_when(std::string_view text, std::int64_t now);

/// 00:00 of the day of `now`.
std::int64_t midnight_before(std::int64_t now);

}  // namespace berth::command
