// What scontrol did to partitions, applied again on top of slurm.conf.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "controller/setup.h"
#include "job/types.h"
#include "wire/record.pb.h"

namespace berth::controller {

/// `cluster` and `policy` are those of `setup`; their partitions become those of slurm.conf with
/// the records applied. What cannot be applied any more (a node that is gone) is left out and
/// returned, one line each.
std::vector<std::string> apply_partition_records(const std::vector<wire::PartitionRecord>& records,
                                                 const Setup& setup, cluster::Cluster& cluster,
                                                 job::Policy& policy);

/// The PartitionName line of slurm.conf (empty when it has none) with what scontrol changed of it.
conf::PartitionLine partition_line(const Setup& setup, const std::string& name,
                                   const wire::PartitionRecord* record);

/// The lines of slurm.conf with the records applied, in order. Troubles as above.
std::vector<conf::PartitionLine> partition_lines(const std::vector<wire::PartitionRecord>& records,
                                                 const Setup& setup,
                                                 const cluster::Cluster& cluster,
                                                 std::vector<std::string>& troubles);

}  // namespace berth::controller
