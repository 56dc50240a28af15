// Why a job cannot run, in Slurm's words and then in ours: the static filter, refusals with the
// nearest miss, and what a waiting job lacks (placement-jobs.md §11).
#pragma once

#include "cluster/usage.h"
#include "place/ask.h"
#include "place/feature.h"
#include "place/place.h"

namespace berth::place {

/// What of a node's build can never meet the ask.
enum class StaticFault { none, cpus, memory, shape, tmp_disk };
StaticFault static_fault(const Ask& ask, const cluster::Node& node);

/// Fills verdict never: error lines, counts per cause and the nearest miss.
void refuse(JobPlan& plan, const cluster::Cluster& cluster, const cluster::Usage& usage,
            const cluster::Partition& partition, const request::Request& request, const Ask& ask,
            const FeatureAsk& features);

/// Fills the reasons of a job that fits the cluster but not what is free now.
void explain_wait(JobPlan& plan, const cluster::Cluster& cluster, const cluster::Usage& usage,
                  const cluster::Partition& partition, const request::Request& request,
                  const Ask& ask, const FeatureAsk& features);

/// "ReqNodeNotAvail, UnavailableNodes:gpu1" when nodes of --nodelist are down or drained; else "".
std::string unavailable_reason(const cluster::Cluster& cluster, const request::Request& request);

/// --gpu-mem and --gpu-mem-min where no GPU has so much, or the memory of none is known; "" = one
/// of the partition does.
std::string gpu_memory_hint(const cluster::Cluster& cluster, const cluster::Partition& partition,
                            const Ask& ask);
/// Says why shares that fit a node but no single GPU never start.
void explain_shares(JobPlan& plan, const cluster::Cluster& cluster,
                    const cluster::Partition& partition, const Ask& ask);

/// What a partition limit says, with its numbers.
std::string hold_hint(const cluster::Cluster& cluster, const cluster::Partition& partition,
                      const Ask& ask, std::string_view reason,
                      std::optional<std::uint32_t> time_limit);

}  // namespace berth::place
