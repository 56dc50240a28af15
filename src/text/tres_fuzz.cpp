// Resource lists: any text is answered with bounded counts and named items, or with a refusal.
#include "text/tres.h"

#include <cstdlib>

namespace {

void check(const berth::Result<std::vector<berth::text::TresItem>>& items) {
  if (!items) {
    if (items.error().code != berth::Code::invalid_tres) std::abort();
    return;
  }
  if (items->size() > berth::text::kMaxTresItems) std::abort();
  for (const auto& item : *items) {
    if (item.kind.empty() || item.count > berth::text::kMaxTresCount) std::abort();
    if (item.kind == "gres" && item.name.empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  bool none = false;
  check(berth::text::parse_gres(input, none));
  check(berth::text::parse_gpus(input));
  check(berth::text::parse_tres_per_task(input));
  check(berth::text::parse_node_gres(input));
  return 0;
}
