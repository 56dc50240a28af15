// One attempt to place a job in one partition: who may be used, then the selection, then cores,
// devices and memory (placement-jobs.md §2–§8).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cluster/usage.h"
#include "place/ask.h"
#include "place/feature.h"
#include "request/request.h"

namespace berth::place {

/// Everything that stays the same while one partition is tried.
struct Trial {
  const cluster::Cluster& cluster;
  const cluster::Partition& partition;
  const request::Request& request;
  const Ask& ask;
  const FeatureAsk& features;
  /// Only these of the partition's nodes (ascending); unset = all of them.
  std::optional<std::span<const cluster::NodeIndex>> within = std::nullopt;
  bool near_only = false;                                  // see SelectInput
  std::optional<std::uint32_t> max_leaves = std::nullopt;  // see SelectInput
};

/// The nodes of -w.
struct ListedNodes {
  std::vector<cluster::NodeIndex> nodes;  // ascending
  bool is_filter = false;                 // more than are needed: one of these, else all of them
};
ListedNodes listed_nodes(const Trial& t);

/// Where it would go with what is free in this view, wishes (--prefer) first.
std::optional<cluster::Allocation> try_now(const Trial& t, const cluster::UsageView& usage);

/// With a filter, including [a|b] alternatives and counted features. `ever`: could the cluster hold
/// it at all, whoever is down.
std::optional<cluster::Allocation> try_features(const Trial& t, const cluster::UsageView& usage,
                                                const FeatureExpr& filter, bool ever);

}  // namespace berth::place
