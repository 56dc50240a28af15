// What task_start.h promises.
#include "step/task_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/fd.h"
#include "step/container.h"
#include "step/key_exchange.h"
#include "step/limits.h"
#include "step/spool.h"
#include "text/cpumask.h"
#include "wire/step_ids.h"

namespace berth::step {
namespace {

constexpr const char* kPidVariable = "SLURM_TASK_PID";

/// A line of the supervisor on the task's standard error.
void say(const std::string& text) {
  write_all(STDERR_FILENO, "slurmstepd: error: " + text + '\n');
}

/// What the supervisor ignores; it is started with everything else at its default.
void reset_signals() {
  for (const int number : {SIGPIPE, SIGHUP, SIGINT}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void take_streams(const TaskStart& start) {
  // The three may be each other's numbers: move them away first.
  std::array<int, 3> from{start.in, start.out, start.err};
  for (int& fd : from) fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 64);
  const int pmi = start.pmi < 0 ? -1 : ::fcntl(start.pmi, F_DUPFD_CLOEXEC, 64);
  for (int i = 0; i < 3; ++i) ::dup2(from[static_cast<std::size_t>(i)], i);
  // At once, not only at execve: a task that hangs before it must not hold the supervisor's lock.
  if (pmi < 0) {
    ::syscall(SYS_close_range, 3U, ~0U, 0U);
    return;
  }
  ::dup2(pmi, kPmiDescriptor);
  ::syscall(SYS_close_range, 3U, static_cast<unsigned>(kPmiDescriptor - 1), 0U);
  ::syscall(SYS_close_range, static_cast<unsigned>(kPmiDescriptor + 1), ~0U, 0U);
}

/// A task that cannot be fenced in does not run.
void enter_groups(const TaskStart& start) {
  for (const std::string& group : start.groups) {
    if (enter_v1_group(group)) continue;
    const int why = errno;
    take_streams(start);
    say(fmt::format("Unable to limit task {}: {}: {}", start.task.rank(), group,
                    std::strerror(why)));
    ::_exit(1);
  }
}

void bind_to_cpus(const TaskStart& start) {
  const bool asked = start.task.bound();
  bool set = start.order.emulated();
  const auto numbers = text::parse_id_set(start.os_cpus);
  if (asked && numbers && numbers->any()) {
    const std::size_t size = CPU_ALLOC_SIZE(numbers->last() + 1);
    cpu_set_t* mask = CPU_ALLOC(numbers->last() + 1);
    CPU_ZERO_S(size, mask);
    numbers->each([&](std::size_t cpu) { CPU_SET_S(cpu, size, mask); });
    set = ::sched_setaffinity(0, size, mask) == 0;
    CPU_FREE(mask);
  }
  const auto cpus = text::parse_id_set(start.task.cpus());
  if (start.order.program().cpu_bind_report().empty() || !cpus) return;
  write_all(STDERR_FILENO, fmt::format("cpu-bind={} - {}, task {:2} {:2} [{}]: mask {}{}\n",
                                       asked ? "MASK" : "NONE", start.spec.node(),
                                       start.task.rank(), start.task.local_id(), ::getpid(),
                                       cpus->hex(), set || !asked ? " set" : " FAILED"));
}

void enter_directory(const TaskStart& start) {
  if (::chdir(start.directory.c_str()) == 0) return;
  const int why = errno;
  say(fmt::format("couldn't chdir to `{}': {}: going to /tmp instead", start.directory,
                  std::strerror(why)));
  if (::chdir("/tmp") != 0) ::_exit(why);
}

/// Runs a program as this process is now and returns its output and status.
int output_of(const std::string& program, const Environment& environment, std::string& output) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const CommonVariables all(environment);
  EnvironmentBlock block{TaskEnvironment(all)};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(write_end.get(), STDOUT_FILENO);
    std::string word = program;
    char* argv[] = {word.data(), nullptr};
    ::execve(program.c_str(), argv, block.get());
    ::_exit(127);
  }
  write_end.reset();
  if (pid < 0) return -1;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(read_end.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    // More than this is not a list of variables.
    if (output.size() < 1024 * 1024) output.append(buffer, static_cast<std::size_t>(n));
  }
  int status = -1;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void run_prolog(const std::string& program, const char* what, Environment& environment) {
  if (program.empty()) return;
  Environment its = environment;
  its.insert_or_assign("SLURM_SCRIPT_CONTEXT", "prolog_task");
  std::string output;
  const int status = output_of(program, its, output);
  if (status != 0) {
    say(fmt::format("{} failed status={}", what, WIFEXITED(status) ? WEXITSTATUS(status) : status));
    ::_exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1);
  }
  write_all(STDOUT_FILENO, apply_task_prolog(output, environment));
}

/// What the kernel does not say: that a script's interpreter is what is missing.
std::string interpreter_of(const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> begin{};
  if (!fd || ::read(fd.get(), begin.data(), begin.size() - 1) < 3) return {};
  std::string_view line(begin.data());
  if (!line.starts_with("#!")) return {};
  line.remove_prefix(2);
  line = line.substr(0, line.find('\n'));
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  line.remove_prefix(first);
  return std::string(line.substr(0, line.find_first_of(" \t\r")));
}

void check_temporary_directory(TaskEnvironment& environment, EnvironmentBlock& block) {
  static char elsewhere[] = "TMPDIR=/tmp";
  const auto wanted = environment.find("TMPDIR");
  if (!wanted) return;
  const std::string path(*wanted);
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return;
  say(fmt::format("Unable to create TMPDIR [{}]: {}", path, std::strerror(errno)));
  say("Setting TMPDIR to /tmp");
  environment.set("TMPDIR", "/tmp");
  block.replace(elsewhere);
}

void become_the_user(const TaskStart& start) {
  if (!start.who.become()) {
    const int why = errno;
    say(fmt::format("Unable to become user {}: {}", start.who.uid, std::strerror(why)));
    ::_exit(why != 0 ? why : 1);
  }
}

}  // namespace

std::string find_program(const std::string& word, const std::string& directory,
                         std::optional<std::string_view> path) {
  if (word.starts_with('/')) return word;
  if (word.find('/') != std::string::npos) return directory + '/' + word;
  if (!path) return word;
  std::string_view rest = *path;
  for (;;) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view folder = rest.substr(0, end);
    std::string file = folder.empty() ? directory : std::string(folder);
    if (!file.starts_with('/')) file = directory + '/' + file;
    file += '/' + word;
    struct stat found{};
    if (::stat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
    if (end == rest.size()) return word;
    rest.remove_prefix(end + 1);
  }
}

bool TaskStart::has_prologs() const {
  return spec.step_id() != wire::kBatchStep &&
         !(order.task_prolog().empty() && order.program().task_prolog().empty());
}

PreparedTask::PreparedTask(TaskStart start) : start_(std::move(start)) {
  start_.environment.set(kPidVariable, "");
  block_ = EnvironmentBlock(start_.environment);
  for (std::string& word : start_.argv) argv_.push_back(word.data());
  argv_.push_back(nullptr);
}

void PreparedTask::run_prologs() {
  Environment all = start_.environment.whole();
  all.insert_or_assign(kPidVariable, std::to_string(::getpid()));
  run_prolog(start_.order.task_prolog(), "TaskProlog", all);
  run_prolog(start_.order.program().task_prolog(), "srun task prolog", all);
  start_.environment.replace_all(std::move(all));
  block_ = EnvironmentBlock(start_.environment);
}

void PreparedTask::run(const LowDescriptors* low) {
  std::array wanted{&start_.in, &start_.out, &start_.err, &start_.pmi};
  if (low != nullptr && !low->take(wanted)) ::_exit(127);
  const wire::Program& program = start_.order.program();
  if (start_.terminal) {
    ::setsid();
    ::ioctl(start_.in, TIOCSCTTY, 0);
  } else if (start_.own_group) {
    ::setpgid(0, 0);
  }
  enter_groups(start_);
  take_streams(start_);
  reset_signals();
  restore_open_files(start_.order.open_files());
  become_the_user(start_);
  // After the ids: changing them clears it. The supervisor's death must not leave tasks behind.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::umask(program.umask());
  const std::vector<std::string> lines = set_limits(program.limits());
  for (const wire::Line& line : start_.task.messages()) say(line.text());
  for (const std::string& line : lines) say(line);
  for (const std::string& line :
       set_niceness(start_.order.propagate_niceness(), program.niceness())) {
    say(line);
  }
  bind_to_cpus(start_);
  enter_directory(start_);
  check_temporary_directory(start_.environment, block_);
  if (start_.has_prologs()) run_prologs();
  std::array<char, 32> pid{};
  *fmt::format_to_n(pid.data(), pid.size() - 1, "{}={}", kPidVariable, ::getpid()).out = '\0';
  block_.replace(pid.data());

  if (!start_.argv.empty()) {
    std::array<char, PATH_MAX> here{};
    const bool known = ::getcwd(here.data(), here.size()) != nullptr;
    file_ = find_program(start_.argv.front(), known ? here.data() : start_.directory,
                         start_.environment.find("PATH"));
  }
  // A bare word that is in no directory of PATH is not tried in the current one.
  if (file_.find('/') == std::string::npos) {
    errno = ENOENT;
  } else {
    ::execve(file_.c_str(), argv_.data(), block_.get());
  }
  const int why = errno;
  const std::string interpreter = why == ENOENT ? interpreter_of(file_) : std::string();
  if (!interpreter.empty()) {
    say(fmt::format("execve(): bad interpreter({}): {}", interpreter, std::strerror(why)));
  } else {
    say(fmt::format("execve(): {}: {}", file_, std::strerror(why)));
  }
  ::_exit(why);
}

void write_as_user(const Identity& who, int file, std::string_view text) {
  // Nothing of the supervisor's: one that hangs must not hold its record or its connections.
  ::dup2(file, STDOUT_FILENO);
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  ::setpgid(0, 0);
  reset_signals();
  if (!who.become()) ::_exit(1);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::_exit(write_all(STDOUT_FILENO, text) ? 0 : 1);
}

void run_epilog(const TaskStart& start, const std::string& program) {
  ::setpgid(0, 0);
  take_streams(start);
  reset_signals();
  become_the_user(start);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::umask(start.order.program().umask());
  if (::chdir(start.directory.c_str()) != 0 && ::chdir("/tmp") != 0) ::_exit(1);
  TaskEnvironment environment = start.environment;
  environment.set("SLURM_SCRIPT_CONTEXT", "epilog_task");
  EnvironmentBlock block(environment);
  std::string word = program;
  char* argv[] = {word.data(), nullptr};
  ::execve(program.c_str(), argv, block.get());
  ::_exit(127);
}

}  // namespace berth::step
