// The things a request names - partition, nodes, features, generic resources, array indices -
// looked up in the cluster, and refused as the controller words it where they do not exist.
#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "place/feature.h"
#include "place/place.h"

namespace berth::place {

/// The things a request names, found in the cluster.
struct Names {
  std::vector<const cluster::Partition*> partitions;
  FeatureAsk features;
};
/// Unknown partition, node, feature, or generic resource: refused as the controller words it.
Result<Names> check_names(const cluster::Cluster& cluster, const request::Request& request,
                          const request::Counts& counts);

}  // namespace berth::place
