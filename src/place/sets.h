// A last look for any set of nodes that holds a job. The gathering of select.cpp goes node by node
// and can paint itself into a corner (it keeps a core for every node still to come, whatever that
// node needs); a job that fits must not be refused for that.
#pragma once

#include <optional>
#include <vector>

#include "place/ask.h"
#include "place/select.h"

namespace berth::place {

/// False when not even the best nodes together would do: a cheap necessary condition.
bool could_hold(const Ask& ask, const std::vector<Taken>& offers);

/// The first set found, in index order, each node with all it offers. Every set is tried where
/// there are few nodes; on larger clusters the strongest nodes by CPUs, by devices and by both.
std::optional<std::vector<Taken>> find_set(const Ask& ask, const std::vector<Taken>& offers,
                                           const std::vector<cluster::NodeIndex>& required);

}  // namespace berth::place
