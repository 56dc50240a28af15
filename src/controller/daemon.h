// berthctld from its options to its end: configuration, locks, store, threads, signals.
#pragma once

#include "base/result.h"
#include "controller/options.h"

namespace berth::controller {

/// Serves until SIGTERM, SIGINT or `scontrol shutdown`.
Result<void> run_controller(const Options& options);

}  // namespace berth::controller
