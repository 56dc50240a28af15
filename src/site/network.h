// From topology.conf to the network of a cluster.
#pragma once

#include "cluster/cluster.h"
#include "conf/complaints.h"
#include "conf/config.h"

namespace berth::site {

/// After Cluster::index_nodes(). Nodes that do not exist, and nodes on no switch, are complained
/// about.
void add_network(const conf::Config& config, cluster::Cluster& cluster,
                 conf::Complaints& complaints);

}  // namespace berth::site
