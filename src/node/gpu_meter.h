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
  std::string missing = {};  // it was not found, and how; "" = it was

  /// The process is on this GPU, or on this part of one.
  [[nodiscard]] bool has(const survey::Process& process) const {
    return number == process.gpu && (!gpu_instance || gpu_instance == process.gpu_instance);
  }
};

struct Inventory;
/// None for pretended nodes.
std::vector<MeteredGpu> metered_gpus(const Inventory& inventory);

class GpuMeter {
 public:
  explicit GpuMeter(std::vector<MeteredGpu> gpus) : gpus_(std::move(gpus)) {}
  /// The same GPUs, of which one that was missing has been found.
  void found(std::vector<MeteredGpu> gpus) { gpus_ = std::move(gpus); }

  [[nodiscard]] bool watches_any() const;
  /// The library's number of each → its own; without parts of GPUs, which share one.
  [[nodiscard]] std::map<std::uint32_t, std::uint32_t> numbers_of(const Bits& gpus) const;
  /// What a job itself has of a GPU that others share.
  struct Own {
    std::uint64_t used_mb = 0;
    std::uint64_t given_mb = 0;
  };
  using Owns = std::map<std::pair<NodeJob, std::size_t>, Own>;
  /// `holders`: the jobs that have GPUs at this moment.
  void add(const GpuRound& round, const std::vector<Jobs::Holder>& holders, const Owns& owns = {});
  /// What came together since the last call; without GPUs when that is nothing.
  wire::JobGpus take(const NodeJob& job);
  void forget(const NodeJob& job) { uses_.erase(job); }
  /// Jobs of which there is something to take.
  [[nodiscard]] std::vector<NodeJob> jobs() const;

 private:
  void add(const GpuRound& round, std::size_t index, const Own* own, wire::GpuUse& use) const;

  std::vector<MeteredGpu> gpus_;
  std::map<NodeJob, std::map<std::size_t, wire::GpuUse>> uses_;
};

}  // namespace berth::node
