// Which program of a command line starts the processes: srun, mpirun, torchrun, … also behind
// `time`, `env X=y`, `numactl …`, `timeout 1h`, and as `python -m torch.distributed.run`.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace berth::script {

enum class Launcher {
  none,
  srun,
  mpirun,
  torchrun,
  torch_distributed,
  deepspeed,
  accelerate,
  salloc,
  sbatch
};

std::string_view launcher_name(Launcher launcher);

struct Launch {
  Launcher launcher = Launcher::none;
  std::size_t at = 0;  // the launcher's word (`python` for python -m …); the program's when none
  std::size_t arguments = 0;                       // the launcher's first argument
  std::map<std::string, std::string> assignments;  // from env
};

/// Looks through the prefixes of a command. Always answers; Launcher::none when it is another
/// program.
Launch recognise(std::span<const std::string> words);

/// The part of a path after the last '/'.
std::string_view base_name(std::string_view path);

}  // namespace berth::script
