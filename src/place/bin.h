// What is free on one node, as the policy that keeps GPUs whole sees it: amounts, not cores and
// device numbers. Nodes with equal bins are equally good.
#pragma once

#include <cstdint>
#include <optional>

#include "base/small_vector.h"
#include "cluster/typical.h"

namespace berth::place {

using cluster::Demand;

constexpr std::uint16_t kWholeGpu = 1000;

struct Bin {
  std::uint64_t cpu_milli = 0;
  std::uint64_t memory_mb = 0;
  std::uint64_t model = 0;             // the bit of its GPU model; 0 = no model is ever asked for
  bool shares_gpus = false;            // its GPUs may be shared
  SmallVector<std::uint16_t, 8> gpus;  // free thousandths of each GPU, ascending

  /// Thousandths of GPUs that are free.
  [[nodiscard]] std::uint32_t free_milli() const;
  [[nodiscard]] std::uint32_t whole_gpus() const;
  [[nodiscard]] bool model_fits(const Demand& demand) const {
    return demand.models == 0 || !demand.wants_gpu() || (demand.models & model) != 0;
  }
  friend bool operator==(const Bin& a, const Bin& b);
};

/// True when the node can take the job at once.
bool fits(const Bin& bin, const Demand& demand);
/// How many such jobs it could take one beside the other.
std::uint64_t copies(const Bin& bin, const Demand& demand);
/// The bin after the job; the job must fit. A share comes from the GPU with the least left that
/// holds it, so shared GPUs fill up before a whole one is broken.
void take(Bin& bin, const Demand& demand);

struct BinHash {
  std::size_t operator()(const Bin& bin) const;
};

}  // namespace berth::place
