// Jobs that share a GPU, and how much of its memory each has of what it was given. Rules only:
// looks in, verdicts out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "node/gpu_meter.h"
#include "node/gpu_watch.h"
#include "node/jobs.h"

namespace berth::node {

/// What the processes of a job have of the memory of a GPU that it shares.
struct GpuMemoryUse {
  std::uint64_t given_mb = 0;  // 0 = the GPU does not tell how much it has
  bool asked_for = false;      // by --gpu-mem; else it is what its shards stand for
  std::uint64_t used_mb = 0;
  NodeStep step;          // the one with the most of it
  std::uint32_t pid = 0;  // its largest process
  int looks_over = 0;     // how many looks in a row it has been above what was given
  /// The same of its steps that have not been told to end.
  struct {
    std::uint64_t used_mb = 0;
    NodeStep step;
    int looks_over = 0;
  } staying;

  [[nodiscard]] bool over(std::uint64_t mb) const { return given_mb > 0 && mb > given_mb; }
  [[nodiscard]] bool over() const { return over(used_mb); }
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

  /// Who is to hear that a job has more than it was given, and has not: itself first, then those
  /// beside it on the GPU, whenever they come, who may run out of memory through no fault of
  /// theirs. Of shards, which bound nothing, only where there are others.
  [[nodiscard]] std::vector<NodeJob> untold(const Key& over,
                                            const std::vector<Jobs::Holder>& holders) const;
  void told(const Key& over, const NodeJob& job) { told_.emplace(over, job); }
  /// The step that is to be ended for what its job has above --gpu-mem; each is named once, and the
  /// next one when what is left without it is still too much.
  std::optional<NodeStep> take_greedy(const Key& over);

 private:
  struct Sum {
    std::uint64_t mb = 0;
    std::pair<std::uint64_t, std::uint32_t> largest;  // MiB, pid
  };
  [[nodiscard]] std::map<NodeStep, Sum> steps_on(const GpuRound& round, std::size_t gpu) const;
  struct Largest {
    std::uint64_t of_all = 0;
    std::uint64_t of_staying = 0;
  };
  void add(const NodeStep& step, const Sum& sum, GpuMemoryUse& use, Largest& largest) const;
  void forget_gone(const std::vector<Jobs::Holder>& holders);

  std::vector<MeteredGpu> gpus_;
  Owner owner_;
  std::map<Key, GpuMemoryUse> uses_;
  std::set<std::pair<Key, NodeJob>> told_;  // of whom it is, and who has heard of it
  std::set<NodeStep> greedy_;               // told to end
};

}  // namespace berth::node
