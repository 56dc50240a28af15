// Runs of neighbouring nodes that are equally good, and which run is best (placement-jobs.md §5.2).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cluster/cluster.h"
#include "place/examine.h"

namespace berth::place {

struct Run {
  std::vector<cluster::NodeIndex> nodes;  // ascending, without required ones
  std::optional<cluster::NodeIndex> first_required;
  std::uint32_t weight = 0;
  std::uint64_t reach = 0;
  std::int64_t cpus = 0;
  std::vector<std::uint64_t> devices;  // usable units of all nodes, by DeviceAsk
};

/// What is still wanted when a run is chosen.
struct Need {
  std::int64_t cpus = 0;
  std::int64_t nodes = 0;
  std::vector<std::uint64_t> devices;
};

/// Groups usable candidates: equal weight and reach, neighbours in index order. An unusable node
/// ends a run, a required one does not. With `ignore_weights` (--contiguous) only gaps end a run.
std::vector<Run> find_runs(const cluster::Cluster& cluster,
                           const std::vector<cluster::NodeIndex>& candidates,
                           const std::vector<cluster::NodeIndex>& required, bool ignore_weights,
                           const std::function<const Offer&(cluster::NodeIndex)>& offer_of);

/// Position of the run to use next; `runs` must not be empty.
std::size_t best_run(const std::vector<Run>& runs, const Need& need);

}  // namespace berth::place
