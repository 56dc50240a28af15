// Times as --begin, --deadline and scontrol write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::text {

/// Unix time of "now+1hour", "tomorrow", "2026-11-16T08:00", … in the time zone of the process;
/// nullopt: not readable.
std::optional<std::int64_t> parse_when(std::string_view text, std::int64_t now);

/// It says how long from now ("now+1hour"), and no time of day.
bool when_is_length(std::string_view text);

}  // namespace berth::text
