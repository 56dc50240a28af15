// Steps over several components: of a heterogeneous job (--het-group=0,1), of an srun that made
// several jobs at once (srun A : B), or on disjoint nodes of one ordinary job.
#pragma once

#include <span>
#include <vector>

#include "place/step.h"

namespace berth::place {

/// One step out of its components: the same id, ranks and node ids continue from one component to
/// the next. What may differ between components (CPUs a task, binding, distribution) is that of
/// component `viewpoint`, whose tasks are going to see it. The first component that does not start
/// decides.
StepPlan join_components(std::span<const StepPlan> parts, std::size_t viewpoint = 0);

/// The job that tasks of such a step see: id and name of the first component, all nodes.
JobFacts join_jobs(std::span<const JobFacts> components);

/// `srun A : B` inside an ordinary job: each component on as few nodes as hold its tasks, none of
/// them used by an earlier one. Changes state.rotation as place_step does.
std::vector<StepPlan> place_step_components(const cluster::Cluster& cluster, const JobFacts& job,
                                            const std::vector<request::Request>& components,
                                            StepState& state);

}  // namespace berth::place
