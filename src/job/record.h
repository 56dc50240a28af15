// Jobs and nodes as the store keeps them, and back.
#pragma once

#include <string>

#include "job/types.h"
#include "wire/record.pb.h"

namespace berth::job {

wire::JobRecord to_record(const cluster::Cluster& cluster, const Job& job);
wire::NodeRecord to_record(const std::string& name, const NodeState& node);
wire::ReservationRecord to_record(const cluster::Cluster& cluster,
                                  const reservation::Reservation& reservation);

/// All but `what`, which needs the words of the submission, and `running`.
Job from_record(const cluster::Cluster& cluster, const wire::JobRecord& record);
/// Nodes that do not exist any more are left out.
reservation::Reservation from_record(const cluster::Cluster& cluster,
                                     const wire::ReservationRecord& record);
void read_record(const wire::NodeRecord& record, NodeState& node);

}  // namespace berth::job
