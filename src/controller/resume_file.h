// What ResumeProgram finds in SLURM_RESUME_FILE: which jobs the nodes are for, as JSON.
#pragma once

#include <string>
#include <vector>

#include "job/state.h"

namespace berth::controller {

std::string resume_text(const job::State& state, const std::vector<std::string>& nodes);

}  // namespace berth::controller
