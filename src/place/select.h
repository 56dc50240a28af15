// Which nodes a job gets and how many CPUs and devices it takes of each (placement-jobs.md §5).
#pragma once

#include <functional>
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
  /// No more leaf switches (or blocks) than these.
  std::optional<std::uint32_t> max_leaves = std::nullopt;
  Ranking* ranking = nullptr;  // one that several selections for the same ask share
};

/// The chosen nodes in index order, or nullopt when the job does not fit now.
std::optional<std::vector<Taken>> select_nodes(const SelectInput& in);

/// The same for one size and without regard to the network. Where all else is equal, nodes are
/// taken in the order of `first`, if given: all candidates.
std::optional<std::vector<Taken>> select_anywhere(
    const SelectInput& in, const std::vector<cluster::NodeIndex>* first = nullptr);

/// What each usable candidate could give if it came first; equal nodes are examined once.
void each_offer(const SelectInput& in,
                const std::function<void(cluster::NodeIndex, const Offer&)>& take);

/// Berth's own order has a say in this selection.
bool uses_ranking(const SelectInput& in);

}  // namespace berth::place
