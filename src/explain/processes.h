// How many processes a foreign launcher starts, and on which nodes: mpirun over the slots of the
// job, torchrun and its like on one node.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "script/launcher.h"

namespace berth::explain {

struct MpiLayout {
  std::vector<std::uint32_t> node_of_rank;  // position of the node in the job
  std::string problem;  // "it asks for 8 processes and finds 4 slots: mpirun fails"; "" when fine
};

inline constexpr std::uint32_t kMaxProcesses = 65'536;

/// `words` from the launcher on; `slots` for each node (SLURM_TASKS_PER_NODE).
MpiLayout mpi_layout(std::span<const std::string> words, const std::vector<std::uint32_t>& slots);

/// Processes that torchrun, deepspeed, accelerate or python -m torch.distributed.* starts where it
/// sees so many GPUs.
std::uint32_t local_processes(std::span<const std::string> words, std::size_t gpus);

/// Processes that one `accelerate launch` starts, by --num_processes and --num_machines; nullopt:
/// only its configuration file knows.
std::optional<std::uint32_t> accelerate_processes(std::span<const std::string> words);

}  // namespace berth::explain
