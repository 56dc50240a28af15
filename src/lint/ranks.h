// Which ranks of a launcher line are on which node, and which GPUs they see there.
#pragma once

#include <string>
#include <vector>

#include "base/bits.h"
#include "lint/facts.h"

namespace berth::lint {

struct RanksOnNode {
  std::string node;
  std::vector<std::uint32_t> ranks{};
  Bits gpus{};       // that the first of these ranks sees
  Bits held{};       // that the job has there; only of mpirun's ranks
  bool same = true;  // every rank sees the same GPUs
};

/// Ranks of a planned srun, by node; empty when it was refused.
std::vector<RanksOnNode> ranks_of_step(const Facts& facts, const place::StepPlan& plan);

/// Ranks that mpirun starts: slots node by node, as many as -np says. The GPUs are those that the
/// job asked for by node or in total; GPUs asked for by task are not shown to mpirun.
std::vector<RanksOnNode> ranks_of_mpirun(const Facts& facts, const Job& job,
                                         const script::Command& command);

/// A `berth bind` in the step's line that its ranks run through: see read_berth_bind.
std::optional<Result<place::BindWords>> bind_of(const StepSeen& step);

/// Slots that mpirun finds on each node of the job (SLURM_TASKS_PER_NODE).
std::vector<std::uint32_t> mpirun_slots(const Facts& facts, const Job& job);

/// Processes that a launcher line of the script starts in all; nullopt: not known.
std::optional<std::uint64_t> processes_of(const Facts& facts, const StepSeen& step);

/// Words of a launcher command from the launcher on; {} without a command.
std::vector<std::string> launcher_words(const StepSeen& step);
bool is_launcher(const StepSeen& step, script::Launcher launcher);
/// srun inside a script, or the single srun of a command line.
bool is_srun(const StepSeen& step);
/// hostname, mkdir, echo …: programs that look at no GPU.
bool ignores_gpus(const std::vector<std::string>& program);
/// Line of the step in the script; 0 for a command line.
int line_of(const StepSeen& step);
/// The command as written, short.
std::string text_of(const StepSeen& step);

}  // namespace berth::lint
