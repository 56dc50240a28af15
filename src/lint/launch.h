// What a launcher line says about its own processes: mpirun -np, torchrun --nproc-per-node.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "place/bind_words.h"

namespace berth::lint {

/// torchrun, python -m torch.distributed.run/launch and friends.
struct TorchLaunch {
  std::string name;                       // "torchrun", "python -m torch.distributed.launch"
  std::optional<std::uint32_t> per_node;  // --nproc-per-node; unset: 1 by default
  bool per_node_is_gpus = false;          // --nproc-per-node=gpu or auto
  std::optional<std::uint32_t> nodes;     // --nnodes (the upper end of a range)
  bool node_rank_given = false;
  std::vector<std::string> program;  // the training script and its arguments

  /// Processes that one launcher starts when it sees so many GPUs.
  [[nodiscard]] std::uint32_t processes(std::size_t gpus_seen) const;
};

/// Looks through `env X=y`, `bash -c "…"`, `time`, `nice`, `singularity exec`, `conda run`,
/// `nsys profile`; nullopt: no such launcher.
std::optional<TorchLaunch> read_torch(std::span<const std::string> words);

/// The program that runs in the end, without env, time, nice, bash -c, containers and profilers.
std::vector<std::string> bare_program(std::span<const std::string> words);

bool is_python(std::string_view program);

/// deepspeed that is told of other hosts, which it reaches by ssh: --hostfile, --num_nodes.
bool deepspeed_reaches_hosts(std::span<const std::string> words);

/// -n, -np, -c, --np of mpirun, mpiexec.
std::optional<std::uint32_t> mpirun_processes(std::span<const std::string> words);
/// -N, --npernode, -ppn, --map-by ppr:n:node.
std::optional<std::uint32_t> mpirun_per_node(std::span<const std::string> words);

/// The program and its arguments of an mpirun line (words from mpirun on); {} when not recognised.
std::vector<std::string> mpirun_program(std::span<const std::string> words);

/// What a `berth bind` in the line says, before whatever program: each rank then takes GPUs and
/// cores of its own. nullopt: there is none; an error: it refuses its own options.
std::optional<Result<place::BindWords>> read_berth_bind(std::span<const std::string> words);

}  // namespace berth::lint
