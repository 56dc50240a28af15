#include "place/fragments.h"

#include <algorithm>

namespace berth::place {
namespace {

/// Sequences to fill a node with, and jobs in each: more of either changes little.
constexpr std::size_t kFills = 16;
constexpr std::size_t kFillLength = 64;

/// Random numbers that are the same everywhere (SplitMix64).
class Draw {
 public:
  double operator()() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    z ^= z >> 31U;
    return static_cast<double>(z >> 11U) * 0x1.0p-53;
  }

 private:
  std::uint64_t state_ = 42;
};

}  // namespace

Fragments::Fragments(const std::vector<cluster::WeightedDemand>& typical) {
  double sum = 0;
  for (const cluster::WeightedDemand& one : typical) {
    if (!one.demand.wants_gpu() || one.weight <= 0) continue;
    wanting_.push_back(one);
    sum += one.weight;
  }
  if (wanting_.empty()) return;
  std::vector<double> upto;
  double so_far = 0;
  least_cpu_ = wanting_.front().demand.cpu_milli;
  least_memory_ = wanting_.front().demand.memory_mb;
  least_gpu_ = kWholeGpu;
  for (cluster::WeightedDemand& one : wanting_) {
    one.weight /= sum;
    so_far += one.weight;
    upto.push_back(so_far);
    least_cpu_ = std::min(least_cpu_, one.demand.cpu_milli);
    least_memory_ = std::min(least_memory_, one.demand.memory_mb);
    if (one.demand.gpus == 0) least_gpu_ = std::min(least_gpu_, one.demand.share_milli);
  }
  Draw draw;
  for (std::size_t f = 0; f < kFills; ++f) {
    std::vector<Demand>& fill = fills_.emplace_back();
    for (std::size_t i = 0; i < kFillLength; ++i) {
      const auto at = std::ranges::upper_bound(upto, draw()) - upto.begin();
      fill.push_back(wanting_[std::min<std::size_t>(at, wanting_.size() - 1)].demand);
    }
  }
}

double Fragments::lost_to_next(const Bin& bin) const {
  const double free = bin.free_milli();
  if (free == 0) return 0;
  double lost = 0;
  for (const cluster::WeightedDemand& one : wanting_) {
    if (!fits(bin, one.demand)) {
      lost += one.weight * free;
      continue;
    }
    const std::uint32_t least = one.demand.gpus > 0 ? kWholeGpu : one.demand.share_milli;
    std::uint32_t useless = 0;
    for (std::uint16_t gpu : bin.gpus) useless += gpu < least ? gpu : 0U;
    lost += one.weight * useless;
  }
  return lost;
}

double Fragments::lost_in_the_end(const Bin& bin) const {
  if (bin.free_milli() == 0 || fills_.empty()) return 0;
  double lost = 0;
  for (const std::vector<Demand>& fill : fills_) {
    Bin left = bin;
    for (const Demand& demand : fill) {
      if (!fits(left, demand)) continue;
      take(left, demand);
      if (left.cpu_milli < least_cpu_ || left.memory_mb < least_memory_) break;
      if (left.gpus[left.gpus.size() - 1] < least_gpu_) break;
    }
    lost += left.free_milli();
  }
  return lost / static_cast<double>(fills_.size());
}

}  // namespace berth::place
