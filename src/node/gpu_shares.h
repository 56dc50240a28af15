// The GPUs in a share of a node: whole ones, and those whose shards or MPS units it has.
#pragma once

#include "base/bits.h"
#include "wire/basic.pb.h"

namespace berth::node {

/// As jobs count them on the node.
inline Bits gpus_in(const wire::NodeShare& share) {
  Bits out;
  for (const wire::GresShare& gres : share.gres()) {
    if (gres.name() != "gpu" && gres.name() != "shard" && gres.name() != "mps") continue;
    for (int i = 0; i < gres.units_size(); ++i) {
      if (gres.units(i) > 0) out.set(static_cast<std::size_t>(i));
    }
  }
  return out;
}

}  // namespace berth::node
