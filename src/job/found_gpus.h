// What an agent found of a node's GPUs, put where the configuration leaves it open.
#pragma once

#include <span>

#include "cluster/cluster.h"
#include "wire/agent.pb.h"

namespace berth::job {

/// Fills in files, near sockets and links that the configuration does not give, and names (UUIDs)
/// where GPUs are cut into parts, which have no number. Where it gives no files, the order becomes
/// that of the machine, by which programs count GPUs. True when something was changed; what the
/// configuration says is never changed.
bool take_found_gpus(cluster::Node& node, std::span<const wire::GpuFound> found);

}  // namespace berth::job
