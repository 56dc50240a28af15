// Ways to give each task its own GPUs, tried out on the cluster before they are proposed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lint/facts.h"
#include "lint/lint.h"

namespace berth::lint {

/// GPUs the job would hold with --gpus-per-task instead of its other GPU options; nullopt: it would
/// not start.
std::optional<std::size_t> gpus_with_per_task(const Facts& facts, const Job& job,
                                              std::uint64_t per_task);

/// Whether the srun starts in the job as it is, with so many GPUs for each task. `instead`: of its
/// own GPU option; else added to the line.
bool step_takes_per_task(const Facts& facts, const Job& job, const StepSeen& step,
                         std::uint64_t per_task, bool instead);

/// "a100:" where the job's GPU option names one type.
std::string gpu_type_prefix(const Job& job);

}  // namespace berth::lint
