// From the new process of a task to the user's program: everything between fork and execve.
#pragma once

#include <string>
#include <vector>

#include "step/environment.h"
#include "step/identity.h"
#include "step/key_exchange.h"
#include "wire/submit.pb.h"
#include "wire/supervise.pb.h"

namespace berth::step {

struct TaskStart {
  const wire::Supervise& order;
  const wire::StepSpec& spec;
  const wire::TaskSpec& task;
  Identity who;
  std::vector<std::string> argv;
  std::string directory;              // where the program is to run
  std::string os_cpus;                // the kernel's numbers; "" = do not bind
  std::vector<std::string> groups{};  // of cgroup v1: entered before anything else is done
  int in = -1;
  int out = -1;
  int err = -1;
  int pmi = -1;                       // its end of the connection for PMI
  const KeyExchange* keys = nullptr;  // says how the task finds the others
  bool terminal = false;              // in, out and err are a terminal, to be the task's own
  bool own_group = true;
};

/// Never returns: the program runs in this process, or it exits with the code Slurm gives.
[[noreturn]] void run_task(const TaskStart& start);
/// As run_task() for a task epilog: ids, directory, environment; its output is the task's.
[[noreturn]] void run_epilog(const TaskStart& start, const std::string& program);

/// The file that execve is given for argv[0]; the word itself when there is none.
std::string find_program(const std::string& word, const std::string& directory,
                         const Environment& environment);

}  // namespace berth::step
