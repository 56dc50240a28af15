// Lists of CPU ids and masks: "0,2*3,5", "0x3,0xc*2" (binding maps and masks), "0-7,16" (sets).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/bits.h"

namespace berth::text {

inline constexpr std::size_t kMaxCpuId = 65535;
inline constexpr std::size_t kMaxListEntries = 65536;

/// "0,1*2,0x3": one single-member set per entry, repeats expanded. nullopt: malformed;
/// `offending` is the first character that does not belong, when there is one.
std::optional<std::vector<Bits>> parse_id_map(std::string_view s, char* offending = nullptr);
/// "0x3,ff*2": one set per entry, hex with or without 0x.
std::optional<std::vector<Bits>> parse_mask_list(std::string_view s, char* offending = nullptr);
/// "0-7,16" → set.
std::optional<Bits> parse_id_set(std::string_view s);

}  // namespace berth::text
