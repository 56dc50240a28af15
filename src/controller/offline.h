// What berthctld does with what is stored instead of serving: check, back up, restore, take a loss.
#pragma once

#include "base/result.h"
#include "controller/options.h"

namespace berth::controller {

/// The exit code: 0 = good, 1 = --check has found something.
Result<int> run_offline(const Options& options);

}  // namespace berth::controller
