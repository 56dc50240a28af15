// Which nodes a job gets and how many CPUs and devices it takes of each (placement-jobs.md §5).
#pragma once

#include <optional>
#include <vector>

#include "cluster/usage.h"
#include "place/ask.h"
#include "place/examine.h"
#include "place/ranking.h"

namespace berth::place {

struct SelectInput {
  const cluster::Cluster& cluster;
  cluster::UsageView usage;
  const Ask& ask;
  std::vector<cluster::NodeIndex> candidates;  // ascending; required ones included
  std::vector<cluster::NodeIndex> required;    // ascending
  bool pool_shares = false;                    // see Examination
  bool near_only = false;                      // only cores near the devices
};

/// The chosen nodes in index order, or nullopt when the job does not fit now.
std::optional<std::vector<Taken>> select_nodes(const SelectInput& in);

}  // namespace berth::place
