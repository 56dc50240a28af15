#include "cluster/typical.h"

#include <algorithm>

namespace berth::cluster {
namespace {

/// A site has a few dozen usual requests; the rare ones say nothing about what will come.
constexpr std::size_t kMostKinds = 512;
constexpr double kRenormaliseAt = 1e12;

}  // namespace

void Typical::note(const Demand& demand) {
  weights_[demand] += unit_;
  ++noted_;
  unit_ *= growth_;
  if (unit_ > kRenormaliseAt) {
    for (auto& [_, weight] : weights_) weight /= unit_;
    unit_ = 1;
  }
  if (weights_.size() > kMostKinds) forget_rare();
}

/// Drops the lighter half, so that forgetting is rare too.
void Typical::forget_rare() {
  std::vector<double> sorted;
  sorted.reserve(weights_.size());
  for (const auto& [_, weight] : weights_) sorted.push_back(weight);
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double least = *middle;
  std::erase_if(weights_, [&](const auto& entry) { return entry.second < least; });
  // All equally rare: the later half of the order goes.
  while (weights_.size() > kMostKinds / 2 + 1) weights_.erase(std::prev(weights_.end()));
}

std::vector<WeightedDemand> Typical::demands() const {
  std::vector<WeightedDemand> out;
  out.reserve(weights_.size());
  for (const auto& [demand, weight] : weights_) out.push_back({demand, weight / unit_});
  return out;
}

}  // namespace berth::cluster
