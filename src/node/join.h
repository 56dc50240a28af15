// `berth join`: this machine becomes a node of the cluster.
#pragma once

#include <string>

#include "base/result.h"
#include "node/options.h"

namespace berth::node {

/// The token is that of the options; "-" reads it from standard input. Returns what to tell the
/// administrator. Without a slurm.conf (options.home) the controller's is put there, and the
/// options become those of the agent that is to be started.
Result<std::string> join_cluster(Options& options);

}  // namespace berth::node
