// What launch_spawn.h promises.
#include "command/launch_spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/process.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "wire/frame.h"

namespace berth::command {
namespace {

using request::Environment;
using request::Opt;

/// "4,5": the file with the order, and where to answer.
constexpr const char* kOrderVariable = "BERTH_SPAWN";
/// More than a task can ask for (pmi/limits.h).
constexpr std::size_t kMostOrder = std::size_t{4} * 1024 * 1024;

/// Variables by which the other step was shaped; this one has a shape of its own.
constexpr std::array kShape = {
    "SLURM_NTASKS",          "SLURM_NPROCS",          "SLURM_NNODES",
    "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_SOCKET",
    "SLURM_NTASKS_PER_GPU",  "SLURM_GPUS_PER_TASK",   "SLURM_TRES_PER_TASK",
    "SLURM_DISTRIBUTION",    "SLURM_HOSTFILE",        "SLURM_EXCLUSIVE",
    "SLURM_EXACT",           "SLURM_WHOLE",           "SLURM_RESV_PORTS",
    "SLURM_MULTI_PROG",      "SLURM_STEP_NUM_NODES",  "SLURM_STEP_NUM_TASKS"};

std::string info_of(const wire::SpawnProgram& program, std::string_view key) {
  for (const wire::Variable& pair : program.info()) {
    if (pair.name() == key) return pair.value();
  }
  return {};
}

/// MPI's word for it, and the one of older managers.
std::string directory_of(const wire::SpawnProgram& program) {
  std::string wdir = info_of(program, "wdir");
  return wdir.empty() ? info_of(program, "wd") : wdir;
}

std::string own_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : "/proc/self/exe";
}

std::string relative_to_here(std::string word) {
  if (word.starts_with('/') || word.find('/') == std::string::npos) return word;
  std::array<char, PATH_MAX> here{};
  if (::getcwd(here.data(), here.size()) == nullptr) return word;
  return fmt::format("{}/{}", here.data(), word);
}

}  // namespace

SpawnTemplate spawn_template(const request::Request& request, std::uint32_t job_id,
                             const Environment& environment) {
  SpawnTemplate out;
  out.environment = environment;
  for (const char* name : kShape) out.environment.erase(name);
  out.options = {fmt::format("--jobid={}", job_id), "--overlap", "--overcommit", "--input=none"};
  const auto inherit = [&](Opt opt, std::string_view name) {
    const request::Given* given = request.given.find(opt);
    if (given == nullptr) return;
    out.options.push_back(given->text.empty() ? fmt::format("--{}", name)
                                              : fmt::format("--{}={}", name, given->text));
  };
  inherit(Opt::mpi, "mpi");
  inherit(Opt::launcher, "launcher");
  inherit(Opt::kill_on_bad_exit, "kill-on-bad-exit");
  inherit(Opt::wait_tasks, "wait");
  inherit(Opt::task_prolog, "task-prolog");
  inherit(Opt::task_epilog, "task-epilog");
  if (request.given.has(Opt::label)) out.options.emplace_back("--label");
  if (request.given.has(Opt::unbuffered)) out.options.emplace_back("--unbuffered");
  if (request.given.has(Opt::quiet)) out.options.emplace_back("--quiet");
  // Files that are open already are not emptied.
  if (request.output || request.error) out.options.emplace_back("--open-mode=append");
  if (request.output) out.options.push_back("--output=" + *request.output);
  if (request.error) out.options.push_back("--error=" + *request.error);
  return out;
}

Result<std::vector<std::string>> spawn_words(const SpawnTemplate& fixed,
                                             const wire::SpawnTasks& tasks, std::size_t nodes) {
  if (tasks.programs().empty()) return fail(Code::protocol, "a request to spawn nothing");
  std::uint64_t count = 0;
  const std::string hosts = info_of(tasks.programs(0), "host");
  for (const wire::SpawnProgram& program : tasks.programs()) {
    if (program.argv().empty() || program.argv(0).empty() || program.tasks() == 0) {
      return fail(Code::protocol, "a request to spawn no program, or no task of one");
    }
    if (info_of(program, "host") != hosts) {
      return fail(Code::unsupported,
                  "the programs of one MPI_Comm_spawn_multiple name different "
                  "hosts; name the same for all, or none");
    }
    count += program.tasks();
  }
  std::vector<std::string> words = fixed.options;
  words.push_back(fmt::format("--ntasks={}", count));
  if (!hosts.empty()) {
    const auto names = text::expand_hostlist(hosts);
    if (!names) return pass(names.error());
    nodes = names->size();
    words.push_back("--nodelist=" + hosts);
  }
  words.push_back(fmt::format("--nodes={}", std::min<std::uint64_t>(count, nodes)));
  const wire::SpawnProgram& first = tasks.programs(0);
  if (std::string directory = directory_of(first); !directory.empty()) {
    words.push_back("--chdir=" + directory);
  }
  words.emplace_back("--");
  words.insert(words.end(), first.argv().begin(), first.argv().end());
  return words;
}

Result<SpawnedSrun> start_srun(const std::vector<std::string>& words, const SpawnTemplate& fixed,
                               const wire::SpawnTasks& tasks, const SignalFd& signals) {
  const auto failed = [](const char* what) {
    return fail(Code::io, fmt::format("{}: {}", what, std::strerror(errno)));
  };
  Fd order(::memfd_create("spawn", MFD_CLOEXEC));
  if (!order || !write_all(order.get(), tasks.SerializeAsString())) return failed("memfd");
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed("pipe");
  SpawnedSrun out{.says = Fd(ends[0])};
  const Fd answer(ends[1]);

  std::vector<std::string> argv = {"srun"};
  argv.insert(argv.end(), words.begin(), words.end());
  std::vector<std::string> variables;
  for (const auto& [name, value] : fixed.environment) variables.push_back(name + "=" + value);
  variables.push_back(fmt::format("{}={},{}", kOrderVariable, order.get(), answer.get()));
  std::vector<char*> words_of = pointers_to(argv);
  std::vector<char*> variables_of = pointers_to(variables);
  const std::string program = own_program();
  const pid_t parent = ::getpid();
  out.pid = ::fork();
  if (out.pid < 0) return failed("fork");
  if (out.pid > 0) return out;
  // Ctrl-C at the terminal is for the first srun, which says what becomes of the others.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::sigprocmask(SIG_SETMASK, &signals.outside(), nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::fcntl(order.get(), F_SETFD, 0);
  ::fcntl(answer.get(), F_SETFD, 0);
  ::execve(program.c_str(), words_of.data(), variables_of.data());
  ::_exit(127);
}

Result<std::optional<SpawnOrder>> take_spawn_order(Environment& environment) {
  const auto at = environment.find(kOrderVariable);
  if (at == environment.end()) return std::nullopt;
  const std::string said = at->second;
  environment.erase(at);
  const std::size_t comma = std::min(said.find(','), said.size());
  const auto file = text::parse_number(std::string_view(said).substr(0, comma), INT_MAX);
  const auto answer =
      text::parse_number(std::string_view(said).substr(std::min(comma + 1, said.size())), INT_MAX);
  const auto wrong = [&] {
    return fail(Code::bad_value, fmt::format("{}={}: not set by srun", kOrderVariable, said),
                "srun sets this variable for another srun; unset it");
  };
  const auto exists = [](const std::optional<std::uint64_t>& fd) {
    return fd && *fd > STDERR_FILENO && ::fcntl(static_cast<int>(*fd), F_SETFD, FD_CLOEXEC) == 0;
  };
  if (!exists(file) || !exists(answer)) return wrong();
  SpawnOrder order{.tasks = {}, .answer = Fd(static_cast<int>(*answer))};
  const Fd from(static_cast<int>(*file));
  std::string bytes(kMostOrder, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t n =
        ::pread(from.get(), bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  bytes.resize(size);
  auto tasks = wire::decode<wire::SpawnTasks>(bytes);
  if (!tasks || tasks->programs().empty()) return wrong();
  order.tasks = std::move(*tasks);
  return order;
}

void put_spawned(wire::Program& program, const wire::SpawnTasks& tasks) {
  program.set_spawned(true);
  if (tasks.programs_size() == 1) return;
  std::uint32_t rank = 0;
  for (int i = 0; i < tasks.programs_size(); ++i) {
    const wire::SpawnProgram& one = tasks.programs(i);
    const std::string directory = directory_of(one);
    for (std::uint32_t k = 0; k < one.tasks(); ++k) {
      wire::ProgramOf& own = *program.add_multi_prog();
      own.set_rank(rank++);
      own.set_appnum(static_cast<std::uint32_t>(i));
      own.set_directory(directory);
      own.add_argv(relative_to_here(one.argv(0)));
      for (int w = 1; w < one.argv_size(); ++w) own.add_argv(one.argv(w));
    }
  }
}

}  // namespace berth::command
