// Whether a reservation may have a node, or a part of it, in its time.
#pragma once

#include "base/result.h"
#include "schedule/calendar.h"

namespace berth::schedule {

std::unexpected<Error> nodes_busy(std::string hint);

/// All of a node that jobs may have.
cluster::NodeShare whole_node(const cluster::Cluster& cluster, NodeIndex index);

/// Refused when a running job may last beyond its start, or another reservation has it.
Result<void> check_share(const job::State& state, Time now, const Reservation& reservation,
                         const cluster::NodeShare& share);

}  // namespace berth::schedule
