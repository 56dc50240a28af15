// Nodes and partitions of the state as messages: what sinfo and scontrol print.
#pragma once

#include "controller/info_job.h"
#include "controller/setup.h"

namespace berth::controller {

wire::NodeInfo node_info(const InfoSite& site, const job::State& state, cluster::NodeIndex index);
wire::PartitionInfo partition_info(const InfoSite& site, const job::State& state,
                                   const cluster::Partition& partition, const Setup& setup);

}  // namespace berth::controller
