// What node_count.h promises.
#include "text/node_count.h"

#include <algorithm>

#include "text/number.h"
#include "text/words.h"

namespace berth::text {
namespace {

constexpr std::size_t kMaxSizes = 65536;

/// "12", "2k" (× 1024), "1m" (× 1048576).
std::optional<std::uint32_t> parse_count(std::string_view s) {
  std::uint64_t factor = 1;
  if (!s.empty()) {
    const char last = s.back();
    if (last == 'k' || last == 'K') factor = 1024;
    if (last == 'm' || last == 'M') factor = 1024 * 1024;
    if (factor != 1) s.remove_suffix(1);
  }
  const auto number = parse_number(s, UINT32_MAX / factor);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number * factor);
}

struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::optional<std::uint32_t> step;
};

std::optional<Range> parse_range(std::string_view s) {
  Range range;
  const std::size_t dash = s.find('-');
  const auto first = parse_count(s.substr(0, dash));
  if (!first) return std::nullopt;
  range.first = range.last = *first;
  if (dash == std::string_view::npos) return range;
  s.remove_prefix(dash + 1);
  const std::size_t colon = s.find(':');
  const auto last = parse_count(s.substr(0, colon));
  if (!last || *last < *first) return std::nullopt;
  range.last = *last;
  if (colon != std::string_view::npos) {
    range.step = parse_count(s.substr(colon + 1));
    if (!range.step || *range.step == 0) return std::nullopt;
  }
  return range;
}

bool add_sizes(const Range& range, std::vector<std::uint32_t>& sizes) {
  const std::uint64_t step = range.step.value_or(1);
  for (std::uint64_t n = range.first; n <= range.last; n += step) {
    if (sizes.size() == kMaxSizes) return false;
    sizes.push_back(static_cast<std::uint32_t>(n));
  }
  return true;
}

}  // namespace

std::optional<NodeCountText> parse_node_count(std::string_view s) {
  NodeCountText out;
  if (s.find_first_of(",:") == std::string_view::npos) {
    const auto range = parse_range(s);
    if (!range) return std::nullopt;
    out.min = range->first;
    out.max = range->last;
    out.range = s.find('-') != std::string_view::npos;
    return out;
  }
  while (true) {
    const std::size_t comma = s.find(',');
    const auto range = parse_range(s.substr(0, comma));
    if (!range || !add_sizes(*range, out.sizes)) return std::nullopt;
    if (comma == std::string_view::npos) break;
    s.remove_prefix(comma + 1);
  }
  std::sort(out.sizes.begin(), out.sizes.end());
  out.sizes.erase(std::unique(out.sizes.begin(), out.sizes.end()), out.sizes.end());
  out.min = out.sizes.front();
  out.max = out.sizes.back();
  out.range = out.min != out.max;
  return out;
}

}  // namespace berth::text
