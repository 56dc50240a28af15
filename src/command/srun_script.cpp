#include "command/srun_script.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/process.h"

namespace berth::command {

int run_srun_script(const std::string& path, const std::string& context,
                    const request::Environment& environment, const SignalFd& signals) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  entries.push_back("SLURM_SCRIPT_CONTEXT=" + context);
  const std::vector<char*> variables = pointers_to(entries);
  std::string program = path;
  std::vector<char*> words = {program.data(), nullptr};

  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &signals.outside());
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int problem =
      ::posix_spawnp(&pid, program.c_str(), nullptr, &attributes, words.data(), variables.data());
  ::posix_spawnattr_destroy(&attributes);
  if (problem != 0) return -1;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

}  // namespace berth::command
