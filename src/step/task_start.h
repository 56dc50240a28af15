// From the new process of a task to the user's program: everything between fork and execve.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "step/descriptor_table.h"
#include "step/environment.h"
#include "step/identity.h"
#include "wire/submit.pb.h"
#include "wire/supervise.pb.h"

namespace berth::step {

struct TaskStart {
  const wire::Supervise& order;
  const wire::StepSpec& spec;
  const wire::TaskSpec& task;
  Identity who;
  std::vector<std::string> argv;
  TaskEnvironment environment;
  std::string directory;              // where the program is to run
  std::string os_cpus;                // the kernel's numbers; "" = do not bind
  std::vector<std::string> groups{};  // of cgroup v1: entered before anything else is done
  int in = -1;
  int out = -1;
  int err = -1;
  int pmi = -1;           // its end of the connection for PMI
  bool terminal = false;  // in, out and err are a terminal, to be the task's own
  bool own_group = true;

  /// Other programs run before the task's own: it takes a while.
  [[nodiscard]] bool has_prologs() const;
};

/// What is made of a TaskStart before its process is there, so that the process, which may share
/// this memory, does little but system calls.
class PreparedTask {
 public:
  explicit PreparedTask(TaskStart start);
  /// Never returns: the program runs in this process, or it exits with the code Slurm gives. `low`:
  /// this process may have its parent's table of descriptors.
  [[noreturn]] void run(const LowDescriptors* low = nullptr);

 private:
  void run_prologs();

  TaskStart start_;
  EnvironmentBlock block_;
  std::vector<char*> argv_;
  std::string file_;  // what is executed
};
/// As PreparedTask::run() for a task epilog: ids, directory, environment; its output is the task's.
[[noreturn]] void run_epilog(const TaskStart& start, const std::string& program);

/// Writes to a file of the user's, as the user, and ends this process; it may wait for the file.
[[noreturn]] void write_as_user(const Identity& who, int file, std::string_view text);

/// The file that execve is given for argv[0]; the word itself when there is none. `path`: the
/// variable PATH.
std::string find_program(const std::string& word, const std::string& directory,
                         std::optional<std::string_view> path);

}  // namespace berth::step
