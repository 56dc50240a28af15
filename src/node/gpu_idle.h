// How long jobs have not used their GPUs. Rules only: rounds and times in, lengths out.
//
// A GPU is idle while the driver says that it is used to 0 %; who is on it does not matter. Where
// that cannot be seen, or was not seen for a while, it may have been busy.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "node/gpu_meter.h"

namespace berth::node {

class GpuIdle {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  explicit GpuIdle(std::vector<MeteredGpu> gpus) : gpus_(std::move(gpus)) {}
  /// The same GPUs, of which one that was missing has been found.
  void found(std::vector<MeteredGpu> gpus) { gpus_ = std::move(gpus); }

  /// Whether the driver tells of all GPUs how much they are used. (Of MIG parts it does not.)
  [[nodiscard]] bool sees_all() const;
  /// `holders`: the jobs that have GPUs at this moment.
  void look(const GpuRound& round, const std::vector<Jobs::Holder>& holders, Moment now);
  /// How long all GPUs of the job have been idle; nullopt: it is not seen of one of them.
  [[nodiscard]] std::optional<std::chrono::milliseconds> of(const NodeJob& job, Moment now) const;

 private:
  enum class Use { idle, busy, unknown };
  [[nodiscard]] Use use_of(const GpuRound& round, std::size_t index) const;

  struct Span {
    Moment since;
    bool seen = true;
  };
  std::vector<MeteredGpu> gpus_;
  std::map<NodeJob, Span> idle_;  // all GPUs of the job
  std::optional<Moment> looked_;
};

}  // namespace berth::node
