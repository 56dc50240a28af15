// The numbers that decide how many devices of a kind, and how many tasks, one node may hold
// (placement-jobs.md §4 points 1 and 2). Used while a node is examined.
#pragma once

#include <cstdint>
#include <limits>

#include "cluster/cluster.h"
#include "place/ask.h"
#include "place/examine.h"

namespace berth::place {

/// Stands for "no limit" in counts of tasks and devices.
inline constexpr std::uint64_t kMany = std::numeric_limits<std::uint32_t>::max();

/// Lowest and highest number of tasks a node may get.
struct TaskBounds {
  std::uint64_t low = 1;
  std::uint64_t high = kMany;
};
TaskBounds task_bounds(const Ask& ask, const cluster::Node& node, std::uint64_t offered_cpus);

/// CPUs that go with each device of a kind; 0 where that is not known.
std::uint64_t cpus_per_device(const Ask& ask, const DeviceAsk& want, Pass pass);

/// What a node has left when the limit is worked out.
struct NodeRoom {
  std::uint64_t memory_mb = 0;
  std::uint64_t cpus = 0;
  std::uint64_t largest_share = kMany;  // of one device, where shares must come from one
};

/// Most units of the kind `which` that may be taken on the node.
std::uint64_t unit_limit(const Ask& ask, std::size_t which, const cluster::Node& node,
                         const NodeRoom& room, const Gathered& gathered, const TaskBounds& bounds,
                         std::uint64_t cpus_each);

}  // namespace berth::place
