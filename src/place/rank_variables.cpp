// What rank_variables.h promises.
#include "place/rank_variables.h"

#include <algorithm>
#include <array>

#include "text/number.h"

namespace berth::place {
namespace {

struct RankVariables {
  const char* rank;
  const char* ranks;
};

/// Of torchrun, and of srun for programs that ask for the same.
constexpr RankVariables kTorch = {"LOCAL_RANK", "LOCAL_WORLD_SIZE"};
/// mpirun may run in a task of srun, so that its own come before srun's.
constexpr std::array kByLauncher = {
    RankVariables{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},  // Open MPI
    RankVariables{"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},                        // MPICH, Intel
    RankVariables{"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},    // MVAPICH2
    RankVariables{"PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},                          // PALS
    kTorch,
};

std::optional<std::uint32_t> number_of(const request::Environment& environment, const char* name) {
  const auto at = environment.find(name);
  if (at == environment.end()) return std::nullopt;
  const auto number = text::parse_number(at->second, UINT32_MAX);
  return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

std::optional<LocalRank> read_pair(const request::Environment& environment,
                                   const RankVariables& names) {
  const auto rank = number_of(environment, names.rank);
  const auto ranks = number_of(environment, names.ranks);
  if (!rank || !ranks || *ranks == 0) return std::nullopt;
  return LocalRank{.rank = *rank, .ranks = *ranks};
}

/// srun --launcher=none tells a task no more than Slurm does: its number on the node, and which
/// ranks are there. A batch script has these as well, but its step's number is below zero.
std::optional<LocalRank> task_of_srun(const request::Environment& environment) {
  const auto rank = number_of(environment, "SLURM_LOCALID");
  const auto ranks = environment.find("SLURM_GTIDS");
  if (!rank || !number_of(environment, "SLURM_STEP_ID") || ranks == environment.end()) {
    return std::nullopt;
  }
  const auto commas = static_cast<std::uint32_t>(std::ranges::count(ranks->second, ','));
  return LocalRank{.rank = *rank, .ranks = commas + 1};
}

}  // namespace

std::optional<LocalRank> local_rank_of(const request::Environment& environment, bool daemon) {
  // torchrun inside mpirun: its processes have mpirun's variables too.
  if (environment.contains("TORCHELASTIC_RUN_ID")) {
    if (const auto worker = read_pair(environment, kTorch)) return worker;
  }
  for (const RankVariables& names : kByLauncher) {
    if (const auto rank = read_pair(environment, names)) return rank;
  }
  return daemon ? std::nullopt : task_of_srun(environment);
}

std::uint32_t cpus_of_rank(const request::Environment& environment) {
  return number_of(environment, "SLURM_CPUS_PER_TASK").value_or(1);
}

}  // namespace berth::place
