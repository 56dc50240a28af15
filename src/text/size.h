// Sizes: number with optional K, M, G, T (also KB, MB… in any case); MiB when no suffix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::text {

/// MiB. "2048K" → 2, "1G" → 1024, "1" → 1; K is rounded up to whole MiB. nullopt: not a size,
/// negative, or beyond 2^52 MiB.
std::optional<std::uint64_t> parse_size_mb(std::string_view s);

/// "64G", "1443M", "1.50G"-like short form as Slurm shows memory: exact multiples of 1024 go up a
/// unit, otherwise "M".
std::string format_mb(std::uint64_t mb);

}  // namespace berth::text
