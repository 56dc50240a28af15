#include "place/keep_whole.h"

#include <algorithm>
#include <cmath>

namespace berth::place {
namespace {

/// How the two views of fragments.h are weighed against each other.
constexpr double kNext = 0.15;
constexpr double kEnd = 1 - kNext;
/// How sharply a place for a large job gains worth as such places become scarce.
constexpr double kScarcity = 3;

/// What only some nodes can serve: several GPUs at once, each request for itself; and smaller
/// requests that name models, which count together for the same models.
std::vector<cluster::WeightedDemand> picky_demands(
    const std::vector<cluster::WeightedDemand>& typical) {
  struct Sum {
    double weight = 0;
    double cpu = 0;
    double memory = 0;
    double gpu = 0;
  };
  std::vector<cluster::WeightedDemand> out;
  std::map<std::uint64_t, Sum> by_models;
  for (const cluster::WeightedDemand& one : typical) {
    const Demand& demand = one.demand;
    if (!demand.wants_gpu() || one.weight <= 0) continue;
    if (demand.gpus > 1) {
      out.push_back(one);
    } else if (demand.models != 0) {
      Sum& sum = by_models[demand.models];
      sum.weight += one.weight;
      sum.cpu += one.weight * static_cast<double>(demand.cpu_milli);
      sum.memory += one.weight * static_cast<double>(demand.memory_mb);
      sum.gpu += one.weight * static_cast<double>(demand.gpu_milli());
    }
  }
  for (const auto& [models, sum] : by_models) {
    Demand mean{.models = models};
    mean.cpu_milli = static_cast<std::uint64_t>(sum.cpu / sum.weight);
    mean.memory_mb = static_cast<std::uint64_t>(sum.memory / sum.weight);
    const auto gpu = static_cast<std::uint32_t>(sum.gpu / sum.weight);
    (gpu >= kWholeGpu ? mean.gpus : mean.share_milli) =
        gpu >= kWholeGpu ? 1 : std::max<std::uint32_t>(gpu, 1);
    out.push_back({mean, sum.weight});
  }
  return out;
}

}  // namespace

KeepWhole::KeepWhole(const std::vector<cluster::WeightedDemand>& typical) : fragments_({}) {
  learn(typical);
}

void KeepWhole::learn(const std::vector<cluster::WeightedDemand>& typical) {
  fragments_ = Fragments(typical);
  judged_.assign(bins_.size(), {});
  moves_.clear();
  double all = 0;
  double gpu_milli = 0;
  for (const cluster::WeightedDemand& one : typical) {
    all += one.weight;
    gpu_milli += one.weight * static_cast<double>(one.demand.gpu_milli());
  }
  mean_gpu_milli_ = all > 0 ? gpu_milli / all : 0;
  picky_ = picky_demands(typical);
  // The ones that make most of the load; the order among equals does not depend on the library.
  std::ranges::stable_sort(picky_, std::greater<>{}, [](const cluster::WeightedDemand& one) {
    return one.weight * static_cast<double>(one.demand.gpu_milli());
  });
  if (picky_.size() > kPickyKinds) picky_.resize(kPickyKinds);
  for (cluster::WeightedDemand& one : picky_) one.weight /= all;
}

KeepWhole::BinId KeepWhole::bin(const Bin& bin) {
  const auto [at, added] = bin_ids_.emplace(bin, static_cast<BinId>(bins_.size()));
  if (added) {
    bins_.push_back(bin);
    judged_.emplace_back();
  }
  return at->second;
}

KeepWhole::DemandId KeepWhole::demand(const Demand& demand) {
  const auto [at, added] = demand_ids_.emplace(demand, static_cast<DemandId>(demands_.size()));
  if (added) demands_.push_back(demand);
  return at->second;
}

double KeepWhole::lost(BinId id) {
  if (judged_[id].lost < 0) {
    const Bin& bin = bins_[id];
    judged_[id].lost = static_cast<float>(kNext * fragments_.lost_to_next(bin) +
                                          kEnd * fragments_.lost_in_the_end(bin));
  }
  return judged_[id].lost;
}

const std::array<float, KeepWhole::kPickyKinds>& KeepWhole::hosts(BinId id) {
  Judged& judged = judged_[id];
  if (!judged.hosts_known) {
    judged.hosts_known = true;
    for (std::size_t i = 0; i < picky_.size(); ++i) {
      judged.hosts[i] = static_cast<float>(copies(bins_[id], picky_[i].demand));
    }
  }
  return judged.hosts;
}

void KeepWhole::add(Supply& supply, BinId id, std::int64_t nodes) {
  const auto count = static_cast<double>(nodes);
  const auto& here = hosts(id);
  for (std::size_t i = 0; i < picky_.size(); ++i) supply.places[i] += count * here[i];
  supply.free_milli += count * bins_[id].free_milli();
}

KeepWhole::Prices KeepWhole::prices(const Supply& supply) const {
  Prices out{};
  if (mean_gpu_milli_ <= 0) return out;
  const double jobs_to_come = supply.free_milli / mean_gpu_milli_;
  for (std::size_t i = 0; i < picky_.size(); ++i) {
    const double need = jobs_to_come * picky_[i].weight;
    const double scarce = supply.places[i] > need ? need / supply.places[i] : 1;
    out[i] = static_cast<double>(picky_[i].demand.gpu_milli()) * std::pow(scarce, kScarcity);
  }
  return out;
}

const KeepWhole::Move& KeepWhole::move(BinId from, DemandId demand_id) {
  const auto [at, added] = moves_.try_emplace(std::uint64_t{from} << 32U | demand_id);
  Move& move = at->second;
  if (!added || !fits(bins_[from], demands_[demand_id])) return move;
  Bin left = bins_[from];
  take(left, demands_[demand_id]);
  move.to = bin(left);
  move.lost = static_cast<float>(lost(move.to) - lost(from));
  const auto& before = hosts(from);
  move.takes_places = before != hosts(move.to);
  move.free_milli = bins_[from].free_milli();
  move.cpu_left = left.cpu_milli;
  return move;
}

std::optional<KeepWhole::Rank> KeepWhole::rank(BinId from, DemandId demand_id,
                                               const Prices& prices) {
  const Move& move = this->move(from, demand_id);
  if (move.to == kNone) return std::nullopt;
  double cost = move.lost;
  if (move.takes_places) {
    const auto& before = hosts(from);
    const auto& left = hosts(move.to);
    for (std::size_t i = 0; i < picky_.size(); ++i) cost += prices[i] * (before[i] - left[i]);
  }
  return Rank{std::llround(cost * 1000), move.free_milli, move.cpu_left};
}

KeepWhole::BinId KeepWhole::after(BinId bin_id, DemandId demand_id) {
  return move(bin_id, demand_id).to;
}

}  // namespace berth::place
