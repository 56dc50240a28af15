// Partitions and node sets: from host lists and names to node positions.
#pragma once

#include "cluster/cluster.h"
#include "conf/complaints.h"
#include "conf/slurm_conf.h"

namespace berth::site {

/// Fills cluster.partitions; its nodes must be indexed.
void add_partitions(const conf::SlurmConf& conf, cluster::Cluster& cluster,
                    conf::Complaints& complaints);

}  // namespace berth::site
