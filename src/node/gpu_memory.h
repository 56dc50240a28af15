// Jobs that share a GPU, and how much of its memory each has of what it was given. Rules only:
// looks in, verdicts out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "node/gpu_meter.h"
#include "node/gpu_watch.h"
#include "node/jobs.h"

namespace berth::node {

/// What the processes of a job have of the memory of a GPU that it shares.
struct GpuMemoryUse {
  std::uint64_t given_mb = 0;
  bool asked_for = false;  // by --gpu-mem; else it is what its shards stand for
  std::uint64_t used_mb = 0;
  NodeStep step;          // the one with the most of it
  std::uint32_t pid = 0;  // its largest process
  int looks_over = 0;     // how many looks in a row it has been above what was given

  [[nodiscard]] bool over() const { return used_mb > given_mb; }
};

class GpuMemory {
 public:
  /// The step that a process is part of.
  using Owner = std::function<std::optional<NodeStep>(std::uint32_t pid)>;
  using Key = std::pair<NodeJob, std::size_t>;  // job and GPU, as it counts it

  GpuMemory(std::vector<MeteredGpu> gpus, Owner owner)
      : gpus_(std::move(gpus)), owner_(std::move(owner)) {}
  /// The same GPUs, of which one that was missing has been found.
  void found(std::vector<MeteredGpu> gpus) { gpus_ = std::move(gpus); }

  /// Nobody is asked about processes on GPUs that are not shared.
  void round(const GpuRound& round, const std::vector<Jobs::Holder>& holders);
  [[nodiscard]] const std::map<Key, GpuMemoryUse>& uses() const { return uses_; }

 private:
  struct Sum {
    std::uint64_t mb = 0;
    std::pair<std::uint64_t, std::uint32_t> largest;  // MiB, pid
  };
  [[nodiscard]] std::map<NodeStep, Sum> steps_on(const GpuRound& round, std::size_t gpu) const;

  std::vector<MeteredGpu> gpus_;
  Owner owner_;
  std::map<Key, GpuMemoryUse> uses_;
};

}  // namespace berth::node
