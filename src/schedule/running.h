// Who runs on a node, and until when.
#pragma once

#include <vector>

#include "job/state.h"
#include "schedule/timeline.h"

namespace berth::schedule {

/// When what a job holds is free again at the latest; always after now.
Time end_of(const job::Job& job, Time now);

/// Those that hold something of the node, in the order of their ids.
std::vector<Timeline::Use> running_uses(const job::State& state, NodeIndex node, Time now);

}  // namespace berth::schedule
