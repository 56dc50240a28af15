// berth bind: between mpirun or torchrun and the program, gives each rank on a node its own GPUs
// and cores.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "command/messages.h"
#include "device/machine.h"
#include "place/bind_words.h"
#include "place/local_ranks.h"
#include "place/rank_variables.h"
#include "request/request.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::command {
namespace {

constexpr std::string_view kBindUsage =
    R"(usage: berth bind [--gpus-per-rank N] [--verbose] [--] PROGRAM [ARGUMENT...]

Runs PROGRAM with the GPUs and cores of this rank, out of those that the job has on this node, by the rules
of srun --gpus-per-task. For ranks that srun does not start itself:

  mpirun -np 4 berth bind ./app
  torchrun --nproc_per_node=4 --no_python berth bind python train.py

  --gpus-per-rank N  so many each; without it all GPUs of the node are divided, and shared where there are
                     more ranks than GPUs
  --verbose          say what the rank got on standard error
  -h, --help         this text

The rank on the node is read from the variables of torchrun, Open MPI, MPICH, Intel MPI, MVAPICH2, PALS or srun.
)";

/// A file of /proc; "" when it may not be read.
std::string read_proc(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{4} << 20;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string out;
  std::array<char, 65536> buffer;
  while (fd && out.size() < kMost) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return out;
}

/// The environment that a process was started with; {} when it may not be read.
request::Environment environment_of(pid_t pid) {
  request::Environment out;
  const std::string text = read_proc(fmt::format("/proc/{}/environ", pid));
  for (const std::string_view word : text::split(text, '\0')) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) continue;
    out.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return out;
}

pid_t parent_of(pid_t pid) {
  const std::string text = read_proc(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = text.rfind(')');
  if (name_end == text.npos) return 0;
  const std::vector<std::string_view> fields =
      text::split(std::string_view(text).substr(name_end + 1), ' ');
  if (fields.size() < 3) return 0;
  return static_cast<pid_t>(text::parse_number(fields[2], INT32_MAX).value_or(0));
}

/// What berth told the launcher on this node. MPICH's mpiexec gives all ranks its own environment,
/// which is that of another node; the first process that berth started here has the right one.
request::Environment told_on_this_node(const request::Environment& own) {
  request::Environment out = own;
  const auto job = own.find("SLURM_JOB_ID");
  pid_t pid = ::getppid();
  constexpr int kMostGenerations = 64;
  for (int i = 0; i < kMostGenerations && pid > 1; ++i, pid = parent_of(pid)) {
    request::Environment its = environment_of(pid);
    const auto its_job = its.find("SLURM_JOB_ID");
    if (!its.contains(place::kLocalShareVariable) || its_job == its.end() || job == own.end() ||
        its_job->second != job->second) {
      continue;
    }
    out = std::move(its);
  }
  return out;
}

void bind_to(const Bits& cpus) {
  device::Search search;
  search.detect = device::Detect::off;  // only CPUs are of interest
  const Bits numbers = device::this_machine(search).os_cpus(cpus);
  if (numbers.empty()) return;
  const std::size_t size = CPU_ALLOC_SIZE(numbers.last() + 1);
  cpu_set_t* mask = CPU_ALLOC(numbers.last() + 1);
  CPU_ZERO_S(size, mask);
  numbers.each([&](std::size_t cpu) { CPU_SET_S(cpu, size, mask); });
  if (::sched_setaffinity(0, size, mask) != 0) {
    print_hint(fmt::format("berth bind: CPUs {}: {}", numbers.ranges(), std::strerror(errno)));
  }
  CPU_FREE(mask);
}

int refuse(const Error& error) {
  return print_error(error, "berth bind");
}

}  // namespace

int run_bind(std::span<const std::string> words, const request::Environment& environment) {
  const Result<place::BindWords> options = place::read_bind_words(words);
  if (!options) {
    refuse(options.error());
    fmt::print(stderr, "{}", kBindUsage);
    return 1;
  }
  if (options->help) {
    fmt::print("{}", kBindUsage);
    return 0;
  }
  const request::Environment told = told_on_this_node(environment);
  const auto share = told.find(place::kLocalShareVariable);
  if (share == told.end()) {
    return refuse(fail(Code::bad_value, "this is not a process of a job of berth",
                       fmt::format("{} is not set: run it in a job, and let mpirun pass the "
                                   "environment on",
                                   place::kLocalShareVariable))
                      .error());
  }
  const auto local = place::read_local_share(share->second);
  if (!local) return refuse(local.error());
  auto rank = place::local_rank_of(environment, local->daemon);
  if (!rank) {
    return refuse(fail(Code::bad_value, "this process does not know its rank on the node",
                       "start it by mpirun, torchrun or srun: mpirun -np 4 berth bind ./app")
                      .error());
  }
  rank->gpus_per_rank = options->gpus_per_rank;
  rank->cpus_per_rank = place::cpus_of_rank(environment);
  const auto choice = place::choose_for_rank(*local, *rank);
  if (!choice) return refuse(choice.error());
  // Under --gpus-per-task mpirun's daemons are told of no GPU at all, and MPICH's ranks of those of
  // another node.
  for (const auto& [name, value] : local->rank_variables(choice->gpus, environment)) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  if (choice->bound) {
    ::setenv(place::kTaskCpus, choice->cpus.hex().c_str(), 1);
    if (!environment.contains("BERTH_PRETENDED")) bind_to(choice->cpus);
  }
  if (options->verbose) {
    print_hint(fmt::format("rank {} of {} on this node: GPUs {}{}, CPUs {}", rank->rank,
                           rank->ranks, choice->gpus.any() ? choice->gpus.list() : "none",
                           choice->shares_gpu ? " (shared with other ranks)" : "",
                           choice->bound ? choice->cpus.ranges() : "all of the job's"));
  }
  std::vector<std::string> argv = options->argv;
  std::vector<char*> pointers;
  for (std::string& word : argv) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers.front(), pointers.data());
  const int why = errno;
  refuse(fail(Code::io, fmt::format("{}: {}", argv.front(), std::strerror(why))).error());
  return why == ENOENT ? 127 : 126;
}

}  // namespace berth::command
