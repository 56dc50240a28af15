// Runs of neighbouring nodes that are equally good, and which run is best (placement-jobs.md §5.2).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "place/examine.h"

namespace berth::place {

struct Run {
  std::size_t first = 0;  // where its nodes begin in RunTable::nodes …
  std::size_t count = 0;  // … and how many they are
  std::optional<cluster::NodeIndex> first_required;
  std::uint64_t order = 0;  // cluster::Node::order
  std::uint64_t reach = 0;
  std::int64_t cpus = 0;
  SmallVector<std::uint64_t, 2> devices;  // usable units of all its nodes, by DeviceAsk
};

struct RunTable {
  std::vector<cluster::NodeIndex> nodes;  // the usable ones, ascending, without required ones
  std::vector<Run> runs;
  [[nodiscard]] std::span<const cluster::NodeIndex> nodes_of(const Run& run) const {
    return {nodes.data() + run.first, run.count};
  }
};

/// What is still wanted when a run is chosen.
struct Need {
  std::int64_t cpus = 0;
  std::int64_t nodes = 0;
  SmallVector<std::uint64_t, 2> devices;
};

/// Groups usable candidates: equal weight and reach, neighbours in index order. An unusable node
/// ends a run, a required one does not. With `ignore_weights` (--contiguous) only gaps end a run.
RunTable find_runs(const cluster::Cluster& cluster,
                   const std::vector<cluster::NodeIndex>& candidates,
                   const std::vector<cluster::NodeIndex>& required, bool ignore_weights,
                   const std::function<const Offer&(cluster::NodeIndex)>& offer_of);

/// Position of the run to use next; `runs` must not be empty.
std::size_t best_run(const std::vector<Run>& runs, const Need& need);

}  // namespace berth::place
