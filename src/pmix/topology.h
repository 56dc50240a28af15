// The machine as hwloc sees it, in the text that MPI libraries read instead of looking themselves:
// many ranks that look at the same time cost more than the rest of their start.
#pragma once

#include <string>

namespace berth::pmix {

/// "" when it cannot be had.
std::string topology_xml();

}  // namespace berth::pmix
