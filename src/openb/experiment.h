// The experiment of the fragmentation paper (Weng et al., USENIX ATC 2023): start empty, let the
// workload's requests arrive in random order, then requests drawn from it, until 130 % of the
// cluster's GPUs were asked for. Each is placed at once or dropped; nothing ever leaves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "openb/workload.h"

namespace berth::openb {

enum class Policy {
  keep_whole,  // berth's own
  best_fit,    // the node with the least left of CPU, memory and GPU
  fgd,         // fragmentation gradient descent, as in the paper
};

constexpr std::size_t kLastPercent = 130;

/// allocated[p]: percent of all GPUs allocated when the requests that arrived add up to p percent.
struct Curve {
  std::array<double, kLastPercent + 1> allocated{};
};

class Experiment {
 public:
  /// The workload must outlive it. What one run learns about nodes serves the next ones.
  Experiment(const Workload& workload, Policy policy);
  ~Experiment();
  Curve run(std::uint64_t seed);

 private:
  class Ranking;
  const Workload& workload_;
  std::unique_ptr<Ranking> ranking_;
};

}  // namespace berth::openb
