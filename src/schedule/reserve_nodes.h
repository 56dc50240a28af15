// Nodes that a reservation could be given.
#pragma once

#include "base/result.h"
#include "reservation/keys.h"
#include "schedule/calendar.h"

namespace berth::schedule {

/// Those that Nodes= means (ascending; also such as are away), else the usable ones of its
/// partition with its features, the best first. Sets the flags that say how they were named, and
/// the partition where none was given.
Result<std::vector<NodeIndex>> candidate_nodes(const job::State& state, const reservation::Ask& ask,
                                               Reservation& out);

}  // namespace berth::schedule
