// What a reservation is given: the nodes it names, or as many as it asks for that are free during
// its whole time.
#pragma once

#include "base/result.h"
#include "reservation/keys.h"
#include "schedule/calendar.h"

namespace berth::schedule {

/// Fills `allocation`, what was asked for, and flags that say how it was found. `reservation` has
/// its times, flags, partition and features already; the one of the same name that exists is not in
/// its way.
Result<void> choose_resources(const job::State& state, const reservation::Ask& ask, Time now,
                              Reservation& reservation);

/// Its times or flags have changed: what it has must still be free.
Result<void> check_resources(const job::State& state, Time now, const Reservation& reservation);

/// Nodes that are away are replaced by others (REPLACE_DOWN), and those that jobs of it have
/// (REPLACE). True when that changed anything.
bool replace_nodes(const job::State& state, Time now, Reservation& reservation);

}  // namespace berth::schedule
