// `berth join TOKEN`: this machine becomes a node of the cluster.
#pragma once

#include <string>

#include "base/result.h"
#include "node/options.h"

namespace berth::node {

/// The token is that of the options; "-" reads it from standard input. Returns what to tell the
/// administrator.
Result<std::string> join_cluster(const Options& options);

}  // namespace berth::node
