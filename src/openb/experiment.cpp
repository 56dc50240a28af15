#include "openb/experiment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>

#include "place/keep_whole.h"

namespace berth::openb {

using place::KeepWhole;

/// The order of preference among nodes, by policy; berth's own is the one jobs are placed with.
class Experiment::Ranking {
 public:
  Ranking(const Workload& workload, Policy policy)
      : policy_(policy), typical_(count(workload)), engine_(typical_), fragments_(typical_) {
    for (const place::Bin& node : workload.nodes) {
      most_.cpu_milli = std::max(most_.cpu_milli, node.cpu_milli);
      most_.memory_mb = std::max(most_.memory_mb, node.memory_mb);
      most_.gpus = std::max(most_.gpus, static_cast<std::uint32_t>(node.gpus.size()));
    }
  }

  KeepWhole& engine() { return engine_; }

  std::optional<KeepWhole::Rank> rank(KeepWhole::BinId bin, KeepWhole::DemandId demand,
                                      const KeepWhole::Prices& prices) {
    if (policy_ == Policy::keep_whole) return engine_.rank(bin, demand, prices);
    const auto fitting = engine_.rank(bin, demand, prices);
    if (!fitting) return std::nullopt;
    const KeepWhole::BinId left = engine_.after(bin, demand);
    const double cost = policy_ == Policy::fgd ? fragmented(left) - fragmented(bin) : space(left);
    return KeepWhole::Rank{std::llround(cost * 1000), 0, 0};
  }

 private:
  static std::vector<cluster::WeightedDemand> count(const Workload& workload) {
    std::map<cluster::Demand, double> counts;
    for (const cluster::Demand& demand : workload.demands) counts[demand] += 1;
    std::vector<cluster::WeightedDemand> out;
    for (const auto& [demand, weight] : counts) out.push_back({demand, weight});
    return out;
  }
  double fragmented(KeepWhole::BinId bin) {
    const auto [at, added] = fragmented_.emplace(bin, 0);
    if (added) at->second = fragments_.lost_to_next(engine_.at(bin));
    return at->second;
  }
  [[nodiscard]] double space(KeepWhole::BinId id) const {
    const place::Bin& bin = engine_.at(id);
    const auto part = [](double have, double most) { return most > 0 ? have / most : 0; };
    return 1000 * (part(static_cast<double>(bin.cpu_milli), static_cast<double>(most_.cpu_milli)) +
                   part(static_cast<double>(bin.memory_mb), static_cast<double>(most_.memory_mb)) +
                   part(bin.free_milli(), most_.gpus * 1000.0));
  }

  Policy policy_;
  std::vector<cluster::WeightedDemand> typical_;
  KeepWhole engine_;
  place::Fragments fragments_;
  std::unordered_map<KeepWhole::BinId, double> fragmented_;
  cluster::Demand most_;
};

Experiment::Experiment(const Workload& workload, Policy policy)
    : workload_(workload), ranking_(std::make_unique<Ranking>(workload, policy)) {}
Experiment::~Experiment() = default;

Curve Experiment::run(std::uint64_t seed) {
  KeepWhole& engine = ranking_->engine();
  std::map<KeepWhole::BinId, std::set<std::size_t>> nodes;  // equal nodes are ranked once
  KeepWhole::Supply supply;
  for (std::size_t i = 0; i < workload_.nodes.size(); ++i) {
    const KeepWhole::BinId id = engine.bin(workload_.nodes[i]);
    nodes[id].insert(i);
    engine.add(supply, id);
  }
  // The engine of the standard is the same everywhere; its distributions are not, so they are not
  // used.
  std::mt19937_64 random(seed);
  std::vector<cluster::Demand> arriving = workload_.demands;
  for (std::size_t i = arriving.size(); i > 1; --i) {
    std::swap(arriving[i - 1], arriving[random() % i]);
  }
  Curve curve;
  std::uint64_t arrived = 0;
  std::uint64_t allocated = 0;
  std::size_t percent = 0;
  for (std::size_t next = 0; percent < kLastPercent; ++next) {
    const cluster::Demand& demand = next < arriving.size()
                                        ? arriving[next]
                                        : workload_.demands[random() % workload_.demands.size()];
    const KeepWhole::DemandId wanted = engine.demand(demand);
    const KeepWhole::Prices prices = engine.prices(supply);
    std::optional<KeepWhole::Rank> best;
    auto at = nodes.end();
    for (auto here = nodes.begin(); here != nodes.end(); ++here) {
      const auto rank = ranking_->rank(here->first, wanted, prices);
      if (!rank || (best && *best < *rank)) continue;
      // Equally good: the first node, as a cluster does it.
      if (best && *best == *rank && *at->second.begin() < *here->second.begin()) continue;
      best = rank;
      at = here;
    }
    arrived += demand.gpu_milli();
    if (best) {
      allocated += demand.gpu_milli();
      const std::size_t node = *at->second.begin();
      const KeepWhole::BinId left = engine.after(at->first, wanted);
      engine.add(supply, at->first, -1);
      engine.add(supply, left);
      at->second.erase(at->second.begin());
      if (at->second.empty()) nodes.erase(at);
      nodes[left].insert(node);
    }
    while (percent < kLastPercent && arrived * 100 >= workload_.gpu_milli * (percent + 1)) {
      ++percent;
      curve.allocated[percent] =
          100.0 * static_cast<double>(allocated) / static_cast<double>(workload_.gpu_milli);
    }
  }
  return curve;
}

}  // namespace berth::openb
