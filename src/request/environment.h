// Input variables of a command as options (SBATCH_…, SALLOC_…, SLURM_…), in the order of the table.
#pragma once

#include <optional>
#include <vector>

#include "request/getopt.h"
#include "request/parse.h"

namespace berth::request {

struct VariableOption {
  Occurrence option;
  std::string variable;
};

/// `step`: srun inside a job, which does not take the job's name for its own and knows
/// SLURM_STEP_GRES. `group`: component of a heterogeneous job whose variables
/// (SLURM_NTASKS_HET_GROUP_1, …) are meant.
std::vector<VariableOption> environment_options(Command command, const Environment& environment,
                                                bool step, std::optional<std::uint32_t> group);

/// Whether a variable of this name may say something about a request; all others are the program's.
bool is_input_variable(std::string_view name);

/// Flags: "", "yes" or a number other than 0.
bool means_yes(std::string_view text);

}  // namespace berth::request
