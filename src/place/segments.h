// --segment: the nodes of a job in groups of equal size, each within one block (or leaf switch).
#pragma once

#include <optional>
#include <vector>

#include "place/network_sums.h"

namespace berth::place {

std::optional<std::vector<Taken>> select_segments(const SelectInput& in, NetworkSums& sums);

}  // namespace berth::place
