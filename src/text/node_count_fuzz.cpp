// -N: whatever is accepted is an ordered range, and the sizes lie inside it in ascending order.
#include "text/node_count.h"

#include <algorithm>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto count =
      berth::text::parse_node_count(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!count) return 0;
  if (count->min > count->max) std::abort();
  if (!std::is_sorted(count->sizes.begin(), count->sizes.end())) std::abort();
  if (!count->sizes.empty() &&
      (count->sizes.front() != count->min || count->sizes.back() != count->max)) {
    std::abort();
  }
  return 0;
}
