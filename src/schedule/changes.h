// The smallest changes of a request with which a job that waits would start at once.
#pragma once

#include <vector>

#include "schedule/why.h"

namespace berth::schedule {

/// At most one of each kind: a shorter limit, fewer GPUs, less memory, fewer CPUs or nodes, another
/// partition, without --exclusive, -C or -w.
std::vector<Change> changes_that_start(job::State& state, Knowledge& knowledge, const job::Job& job,
                                       Time now);

}  // namespace berth::schedule
