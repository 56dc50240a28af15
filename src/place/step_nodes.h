// Which nodes of its job a step runs on: listed ones first, then idle ones in rotation
// (spec placement-steps.md §3.2).
#pragma once

#include <span>
#include <vector>

#include "place/step_resources.h"

namespace berth::place {

struct NodeChoice {
  std::vector<std::size_t> positions;  // in the job, ascending
  std::size_t rotation = 0;            // where the next step starts to look
};

/// Chooses among `rooms` (one for each node of the job). The error's code says what was short;
/// whether that is for ever or for now, the caller knows: it asks again with an empty job.
Result<NodeChoice> choose_nodes(const StepAsk& ask, std::span<const StepRoom> rooms,
                                std::size_t rotation);

/// Tasks that fit when only their CPUs are known (-c without -n): over the idle nodes, those with
/// most CPUs first when the step wants fewer.
std::uint32_t tasks_that_fit(const StepAsk& ask, std::span<const StepRoom> rooms);

}  // namespace berth::place
