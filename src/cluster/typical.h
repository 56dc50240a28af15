// What jobs typically take of one node: a histogram of the requests seen lately, in which older
// ones count less and less. The policy that keeps GPUs whole asks it what is likely to come.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace berth::cluster {

/// What a job takes of one node. A job takes whole GPUs, or a share of one, or none.
struct Demand {
  std::uint64_t cpu_milli = 0;  // thousandths of a CPU
  std::uint64_t memory_mb = 0;
  std::uint32_t gpus = 0;         // whole ones
  std::uint32_t share_milli = 0;  // thousandths of one GPU
  std::uint64_t models = 0;       // GPU models that will do, a bit for each; 0 = any

  [[nodiscard]] bool wants_gpu() const { return gpus > 0 || share_milli > 0; }
  /// Thousandths of GPUs.
  [[nodiscard]] std::uint64_t gpu_milli() const { return std::uint64_t{gpus} * 1000 + share_milli; }
  friend auto operator<=>(const Demand&, const Demand&) = default;
};

struct WeightedDemand {
  Demand demand;
  double weight = 0;
};

class Typical {
 public:
  /// Of the last requests noted, about `horizon` count.
  explicit Typical(double horizon = 4096) : growth_(1 + 1 / horizon) {}

  void note(const Demand& demand);
  /// How many were noted since the beginning.
  [[nodiscard]] std::uint64_t noted() const { return noted_; }
  /// All of them in a fixed order; the weights add up to the number of requests that count.
  [[nodiscard]] std::vector<WeightedDemand> demands() const;

 private:
  void forget_rare();

  double growth_;
  double unit_ = 1;  // weight of the next request: growing it is what makes older ones count less
  std::uint64_t noted_ = 0;
  std::map<Demand, double> weights_;
};

}  // namespace berth::cluster
