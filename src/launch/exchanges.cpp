// What exchanges.h promises.
#include "launch/exchanges.h"

namespace berth::launch {

std::optional<wire::Exchange> Exchanges::add(wire::Exchange part) {
  if (part.wanted() > 0 && !root_) return part;
  const std::size_t wanted = part.wanted() > 0 ? part.wanted() : nodes_;
  const auto [at, first] = open_.try_emplace({part.channel(), part.group(), part.number()});
  wire::Exchange& whole = at->second;
  if (first) {
    whole = std::move(part);
  } else {
    whole.set_nodes(whole.nodes() + part.nodes());
    whole.mutable_data()->append(part.data());
  }
  if (whole.nodes() < wanted) return std::nullopt;
  std::optional<wire::Exchange> out = std::move(whole);
  open_.erase(at);
  return out;
}

}  // namespace berth::launch
