// -N: "4", "2-4", "2,4,8", "1-9:4", "2k".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace berth::text {

struct NodeCountText {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  bool range = false;
  std::vector<std::uint32_t> sizes;  // only for "a,b,c" and "a-b:step"
};

std::optional<NodeCountText> parse_node_count(std::string_view s);

}  // namespace berth::text
