// The nodes of one decision as the policy that keeps GPUs whole sees them: what is free on each as
// a bin, what the job would take as a demand, and which node it would rather have.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/usage.h"
#include "place/ask.h"
#include "place/examine.h"
#include "place/keep_whole.h"

namespace berth::place {

/// What is taken of one chosen node, before tasks and cores are settled.
struct Taken {
  cluster::NodeIndex node = 0;
  std::uint32_t cpus = 0;              // the node's share of the job's CPUs
  std::vector<std::uint64_t> devices;  // granted units, by DeviceAsk
  Offer offer;
};

/// What is free on a node, in amounts.
Bin bin_of(const cluster::Node& node, const cluster::NodeUsage& usage);

class Ranking {
 public:
  using Rank = KeepWhole::Rank;

  /// All must outlive it. One at a time uses what the policy remembers of this usage; others, in
  /// other threads, start from what is typical at that time.
  Ranking(const cluster::Cluster& cluster, const cluster::UsageView& usage, const Ask& ask);
  ~Ranking();
  Ranking(const Ranking&) = delete;
  Ranking& operator=(const Ranking&) = delete;

  /// Lower is better. Every node has one, so a job goes to no fewer nodes than without a ranking.
  Rank of(const Taken& taken);

 private:
  class Memory;
  void find_memory();
  KeepWhole::BinId bin_at(cluster::NodeIndex node);
  void find_prices();
  [[nodiscard]] Demand demand_of(const Taken& taken) const;

  const cluster::Cluster& cluster_;
  const cluster::UsageView& usage_;
  const Ask& ask_;
  bool shared_ = false;  // memory_ is that of the usage
  std::unique_ptr<Memory> own_;
  Memory* memory_ = nullptr;
  KeepWhole::Prices prices_{};
  bool prices_known_ = false;
};

}  // namespace berth::place
