// CPU lists: sets survive being shown and read again; lists stay within their bounds.
#include "text/cpumask.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto set = text::parse_id_set(input)) {
    const auto again = text::parse_id_set(set->ranges());
    if (!again || !(*again == *set)) std::abort();
  }
  char offending = 0;
  if (const auto map = text::parse_id_map(input, &offending)) {
    for (const Bits& id : *map) {
      if (id.count() != 1 || id.last() > text::kMaxCpuId) std::abort();
    }
  }
  if (const auto masks = text::parse_mask_list(input, &offending)) {
    if (masks->size() > text::kMaxListEntries) std::abort();
    const auto again = text::parse_mask_list(masks->front().hex());
    if (!again || !(again->front() == masks->front())) std::abort();
  }
  return 0;
}
