// "0-3,8" → {0,1,2,3,8}: what Bits::ranges() writes, read again.
#pragma once

#include <optional>
#include <string_view>

#include "base/bits.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::job {

/// nullopt when it is no such list; "" is the empty set.
inline std::optional<Bits> parse_ranges(std::string_view text) {
  constexpr std::uint64_t kMost = 1U << 22U;
  Bits out;
  if (text.empty()) return out;
  for (const std::string_view part : text::split(text, ',')) {
    const auto dash = part.find('-');
    const auto first = text::parse_number(part.substr(0, dash), kMost);
    const auto last = dash == part.npos ? first : text::parse_number(part.substr(dash + 1), kMost);
    if (!first || !last || *first > *last) return std::nullopt;
    out |= Bits::range(*first, *last);
  }
  return out;
}

}  // namespace berth::job
