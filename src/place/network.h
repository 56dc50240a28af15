// Which nodes a job gets where the network matters: the lowest switch that holds it, on as few leaf
// switches as can be, and of several that would do the one with least room to spare. Blocks are
// leaves too; what a job asks for within them (--segment) is kept. What a node offers, and how the
// job is gathered among the nodes looked at, is the matter of select.cpp.
#pragma once

#include <optional>
#include <vector>

#include "place/select.h"

namespace berth::place {

/// True when the network has a say in where this job goes.
bool network_counts(const cluster::Cluster& cluster, const Ask& ask);

/// As select_nodes for one size, with regard to the network.
std::optional<std::vector<Taken>> select_near(const SelectInput& in);

}  // namespace berth::place
