// Berth's own choice of nodes: keep GPUs whole. Of the nodes that could take a job it takes the one
// where the fewest GPUs become useless for the jobs that typically come (fragments.h), and spares
// the nodes that large jobs and jobs that name a model need when these become scarce. Everything is
// remembered by what is free on a node, so that one decision on thousands of nodes costs a few
// table lookups for each.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cluster/typical.h"
#include "place/bin.h"
#include "place/fragments.h"

namespace berth::place {

class KeepWhole {
 public:
  /// A bin that was seen, a demand that was seen.
  using BinId = std::uint32_t;
  using DemandId = std::uint32_t;
  static constexpr std::size_t kPickyKinds = 16;

  explicit KeepWhole(const std::vector<cluster::WeightedDemand>& typical);
  /// Other jobs are typical now: what was remembered is forgotten, the ids stay.
  void learn(const std::vector<cluster::WeightedDemand>& typical);

  BinId bin(const Bin& bin);
  [[nodiscard]] const Bin& at(BinId id) const { return bins_[id]; }
  [[nodiscard]] std::size_t bins() const { return bins_.size(); }
  DemandId demand(const Demand& demand);

  /// How many jobs of each picky kind (several GPUs, named models) the cluster can still take, and
  /// its free GPUs: what makes such places scarce. Kept by the caller, node by node.
  struct Supply {
    std::array<double, kPickyKinds> places{};
    double free_milli = 0;
  };
  /// So many nodes with this bin come (or go, where negative).
  void add(Supply& supply, BinId bin, std::int64_t nodes = 1);

  /// What one place for a picky job is worth at present.
  using Prices = std::array<double, kPickyKinds>;
  [[nodiscard]] Prices prices(const Supply& supply) const;

  /// Lower is better. Equal ranks are equally good: the caller takes the first node.
  struct Rank {
    std::int64_t lost = 0;         // millionths of GPUs that become useless
    std::uint32_t free_milli = 0;  // free GPUs: CPU jobs leave nodes with GPUs alone
    std::uint64_t cpu_left = 0;    // best fit
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  /// How good a node is for a job; unset where the job does not fit.
  std::optional<Rank> rank(BinId bin, DemandId demand, const Prices& prices);
  /// The bin after the job, which must fit.
  BinId after(BinId bin, DemandId demand);

 private:
  static constexpr BinId kNone = ~BinId{0};
  /// A bin and a demand: all that does not depend on prices.
  struct Move {
    BinId to = kNone;  // the bin after, or kNone
    float lost = 0;
    bool takes_places = false;  // of picky jobs
    std::uint32_t free_milli = 0;
    std::uint64_t cpu_left = 0;
  };
  struct Judged {
    float lost = -1;  // -1: not known yet
    bool hosts_known = false;
    std::array<float, kPickyKinds> hosts{};
  };
  double lost(BinId id);
  const std::array<float, kPickyKinds>& hosts(BinId id);
  const Move& move(BinId bin, DemandId demand);

  Fragments fragments_;
  std::vector<cluster::WeightedDemand> picky_;  // weights: shares of all typical jobs
  double mean_gpu_milli_ = 0;                   // of a typical job
  std::deque<Bin> bins_;
  std::unordered_map<Bin, BinId, BinHash> bin_ids_;
  std::vector<Judged> judged_;  // by bin
  std::vector<Demand> demands_;
  std::map<Demand, DemandId> demand_ids_;
  std::unordered_map<std::uint64_t, Move> moves_;  // by bin and demand
};

}  // namespace berth::place
