// What a NodeName= line says about a node, before generic resources.
#pragma once

#include "cluster/cluster.h"
#include "conf/complaints.h"
#include "conf/slurm_conf.h"

namespace berth::site {

/// Sockets, cores, threads, memory, features, reserved cores and state; name and gres stay empty.
cluster::Node node_hardware(const conf::NodeLine& line, conf::Complaints& complaints);

/// `count` cores withheld from jobs: from the highest core of the highest socket downwards, one of
/// each socket in turn.
Bits specialized_cores(const cluster::Node& node, std::uint32_t count);

/// RestrictedCoresPerGPU: for each GPU in turn so many of the lowest cores of its sockets that are
/// left; fewer where there are no more.
Bits gpu_cores(const cluster::Node& node, std::uint32_t per_gpu);

}  // namespace berth::site
