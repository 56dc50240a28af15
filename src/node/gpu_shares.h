// The GPUs in a share of a node: whole ones, and parts of GPUs that others may share.
#pragma once

#include <map>

#include "base/bits.h"
#include "text/tres.h"
#include "wire/basic.pb.h"

namespace berth::node {

/// As jobs count them on the node.
inline Bits gpus_in(const wire::NodeShare& share) {
  Bits out;
  for (const wire::GresShare& gres : share.gres()) {
    if (gres.name() != "gpu" && !text::is_part_of_gpu(gres.name())) continue;
    for (int i = 0; i < gres.units_size(); ++i) {
      if (gres.units(i) > 0) out.set(static_cast<std::size_t>(i));
    }
  }
  return out;
}

/// A part of a GPU that says how much of its memory belongs to a job.
struct GpuPart {
  std::uint64_t units = 0;
  std::uint64_t whole = 0;    // of the GPU
  bool in_megabytes = false;  // --gpu-mem; else shards, of which each stands for as much

  /// MiB of a GPU that has so many.
  [[nodiscard]] std::uint64_t of(std::uint64_t memory_mb) const {
    if (in_megabytes) return units;
    return whole == 0 ? memory_mb : memory_mb * units / whole;
  }
};

/// By GPU. MPS is not among them: its units are of time.
inline std::map<std::size_t, GpuPart> gpu_parts_in(const wire::NodeShare& share) {
  std::map<std::size_t, GpuPart> out;
  for (const wire::GresShare& gres : share.gres()) {
    const bool in_megabytes = gres.name() == text::kGpuMemory;
    if (!in_megabytes && gres.name() != "shard") continue;
    for (int i = 0; i < gres.units_size() && i < gres.whole_size(); ++i) {
      if (gres.units(i) > 0) {
        out[static_cast<std::size_t>(i)] = {gres.units(i), gres.whole(i), in_megabytes};
      }
    }
  }
  return out;
}

}  // namespace berth::node
