// Which generic resources a step asks for: its own request, or the job's when it names none.
#pragma once

#include <optional>
#include <vector>

#include "place/step_request.h"

namespace berth::place {

struct GresRequest {
  std::vector<request::GresAsk> per_node, per_step, per_socket, per_task;  // no zero counts

  [[nodiscard]] std::vector<request::GresAsk> gpus_of_step() const;
};

/// What the step names on the command line or through the environment; else what the job asked for.
GresRequest requested_gres(const JobFacts& job, const request::Request& srun);

/// For each resource the one way of counting that applies.
std::vector<StepGres> step_gres(const GresRequest& wanted,
                                std::optional<std::uint32_t> ntasks_per_gpu);

}  // namespace berth::place
