// From an ask to a plan: nodes, then layout, then what is taken on each node, then binding. Decides
// between "starts", "waits" and "never".
#pragma once

#include <span>

#include "place/step_request.h"

namespace berth::place {

/// Fills in `plan`, whose id is set. Returns where the next step starts to look for nodes:
/// unchanged unless the step starts.
std::size_t place_ask(const cluster::Cluster& cluster, const JobFacts& job, StepAsk ask,
                      std::span<const StepPlan> running, std::size_t rotation, StepPlan& plan);

}  // namespace berth::place
