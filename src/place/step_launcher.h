// The step of mpirun's daemons (srun --external-launcher): one task on each node that it names,
// with all that the job has there, and nothing taken from other steps.
#pragma once

#include "place/step.h"

namespace berth::place {

/// The daemons on these nodes of the job (positions in it, ascending).
StepPlan launcher_plan(const cluster::Cluster& cluster, const JobFacts& job,
                       const std::vector<std::size_t>& positions);

/// Where an srun wants its daemons: refused as any other step would be, and where it asks for
/// several on a node.
Result<std::vector<std::size_t>> launcher_nodes(const cluster::Cluster& cluster,
                                                const JobFacts& job, const request::Request& srun,
                                                std::vector<Message>& warnings);

}  // namespace berth::place
