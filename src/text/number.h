// Whole numbers as options write them: decimal digits only, bounded, no sign, no blanks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::text {

/// "12" → 12; nullopt for "", "-1", "+1", "1e3", " 1", or anything above `max`.
std::optional<std::uint64_t> parse_number(std::string_view s, std::uint64_t max = UINT64_MAX);

}  // namespace berth::text
