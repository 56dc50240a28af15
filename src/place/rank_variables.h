// A process's rank on its node, by the variables of whoever started it: mpirun, torchrun or srun.
#pragma once

#include <optional>

#include "place/local_ranks.h"
#include "request/request.h"

namespace berth::place {

/// The launcher nearest to the program counts: torchrun, then an MPI, then srun. `daemon`: the
/// process descends from a daemon of mpirun, so that srun's own numbers are the daemon's.
std::optional<LocalRank> local_rank_of(const request::Environment& environment, bool daemon);

/// CPUs that the job counts for a rank (SLURM_CPUS_PER_TASK), 1 when it does not say.
std::uint32_t cpus_of_rank(const request::Environment& environment);

}  // namespace berth::place
