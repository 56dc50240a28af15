// What berthd -C and -G print.
#pragma once

#include <string>

#include "base/result.h"
#include "node/options.h"

namespace berth::node {

/// -C: this machine as a line of slurm.conf, and how long it is up. -G: its resources, a line for
/// each device; where there is no configuration, as they were found.
Result<std::string> hardware_text(const Options& options);

}  // namespace berth::node
