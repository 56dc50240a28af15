// What jobs make of their GPUs, from one look a second.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/gpu_watch.h"
#include "node/jobs.h"
#include "wire/agent.pb.h"

namespace berth::node {

/// A GPU as jobs count it. Parts of one GPU share its number.
struct MeteredGpu {
  std::optional<std::uint32_t> number;  // as NVIDIA's library counts; unset = it is not watched
  std::optional<std::uint32_t> gpu_instance;  // of a part
  std::string type;
  std::uint64_t memory_mb = 0;
};

struct Inventory;
/// None for pretended nodes.
std::vector<MeteredGpu> metered_gpus(const Inventory& inventory);

class GpuMeter {
 public:
  explicit GpuMeter(std::vector<MeteredGpu> gpus) : gpus_(std::move(gpus)) {}

  [[nodiscard]] bool watches_any() const;
  /// `holders`: the jobs that have GPUs at this moment.
  void add(const GpuRound& round, const std::vector<Jobs::Holder>& holders);
  /// What came together since the last call; without GPUs when that is nothing.
  wire::JobGpus take(const NodeJob& job);
  void forget(const NodeJob& job) { uses_.erase(job); }
  /// Jobs of which there is something to take.
  [[nodiscard]] std::vector<NodeJob> jobs() const;

 private:
  void add(const GpuRound& round, std::size_t index, wire::GpuUse& use) const;

  std::vector<MeteredGpu> gpus_;
  std::map<NodeJob, std::map<std::size_t, wire::GpuUse>> uses_;
};

}  // namespace berth::node
