// What becomes free when running jobs reach their limits, as one list in the order of time. Made
// once for a pass; every search for a start walks along it.
#pragma once

#include <vector>

#include "cluster/room.h"
#include "schedule/calendar.h"

namespace berth::schedule {

/// A job that runs on the node ends; what is free there from then on, planned jobs not counted.
struct Opening {
  Time at = 0;
  NodeIndex node = 0;
  cluster::Room room;
};

/// By time, then by node. Nodes that are not usable are left out.
std::vector<Opening> openings(const job::State& state, Time now);

}  // namespace berth::schedule
