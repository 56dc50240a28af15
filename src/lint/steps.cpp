// Rules about steps inside a job: refused ones, those that wait for each other without need, and
// those that nobody waits for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "lint/ranks.h"
#include "lint/rule.h"
#include "text/size.h"

namespace berth::lint {
namespace {

using request::Opt;
using request::Request;
using script::Launcher;

bool refused(const StepSeen& step) {
  return step.plan != nullptr && step.plan->verdict == place::StepVerdict::refused;
}

/// It could not start at once, whether or not its later start was planned too.
bool waited(const StepSeen& step) {
  return step.plan != nullptr &&
         (step.plan->verdict == place::StepVerdict::waits || !step.plan->waits_for_steps.empty());
}

/// "2 (1 on each of its 2 nodes)".
std::string cpus_of(const Job& job) {
  const auto& nodes = job.plan->allocation.nodes;
  const bool even = std::ranges::all_of(
      nodes, [&](const auto& node) { return node.usable_cpus == nodes.front().usable_cpus; });
  if (nodes.size() < 2) return fmt::format("{}", job.cpus());
  return even ? fmt::format("{} ({} on each of its {} nodes)", job.cpus(),
                            nodes.front().usable_cpus, nodes.size())
              : fmt::format("{} on {} nodes", job.cpus(), nodes.size());
}

void find_too_many_cpus(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    const Job* job = facts.job_of(step);
    if (!refused(step) || step.command == nullptr || step.request == nullptr || job == nullptr ||
        !job->placed() || step.plan->error.code != Code::too_many_cpus) {
      continue;
    }
    const std::uint64_t tasks = step.request->ntasks.value_or(1);
    const std::uint64_t each = step.request->cpus_per_task.value_or(1);
    std::string hint;
    if (each > 1 && tasks > 0 && job->cpus() / tasks >= 1 && step.request->ntasks &&
        job->request->ntasks) {
      hint = fmt::format("srun --cpus-per-task={} …      (the most that fits), or ",
                         job->cpus() / tasks);
    }
    const bool even = job->nodes() > 1 && tasks % job->nodes() == 0;
    hint += facts.as_directive(even ? fmt::format("--ntasks-per-node={}", tasks / job->nodes())
                                    : fmt::format("--ntasks={}", tasks));
    if (each > 1) hint += fmt::format(" --cpus-per-task={}", each);
    report.add(line_of(step),
               fmt::format("{} needs {}{}, and the job has {}. srun fails: {}.", text_of(step),
                           count(tasks * each, "CPU"),
                           each > 1 ? fmt::format(" ({} × {})", tasks, each) : "", cpus_of(*job),
                           slurm_text(Code::too_many_cpus)),
               std::move(hint));
  }
}

void find_refused_step(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    const Error* error = step.error;
    if (error == nullptr && refused(step)) error = &step.plan->error;
    const bool told = step.command != nullptr && error != nullptr &&
                      error->code == Code::too_many_cpus;  // by find_too_many_cpus
    if (error == nullptr || told) continue;
    std::string hint = error->hint;
    const std::string_view what = error->what();
    if (what.find("--gpus-per-node and --gres=gpu") != std::string_view::npos) {
      hint =
          "the job's --gpus-per-node is inherited:   srun --gpus-per-node=N …      (instead of "
          "--gres=gpu:N)";
    }
    report.add(line_of(step), fmt::format("{} fails: {}", text_of(step), what), std::move(hint));
  }
}

/// What keeps a waiting step from starting although the job has room for it.
struct Causes {
  bool cpus = false;
  bool memory = false;
  bool gpus = false;
  [[nodiscard]] bool any() const { return cpus || memory || gpus; }
};

const StepSeen* find_step(const Facts& facts, std::uint32_t id) {
  const auto at = std::ranges::find_if(facts.input.steps, [&](const StepSeen& step) {
    return step.plan != nullptr && step.plan->id == id && !refused(step);
  });
  return at == facts.input.steps.end() ? nullptr : &*at;
}

bool names_gpus(const Request& request) {
  constexpr std::array<Opt, 6> kOptions = {
      Opt::gres,         Opt::gpus, Opt::gpus_per_node, Opt::gpus_per_task, Opt::gpus_per_socket,
      Opt::tres_per_task};
  return std::ranges::any_of(kOptions,
                             [&](Opt opt) { return request.given.on_command_line(opt); }) ||
         request.gres_none;
}

bool wants_all_gpus(const Job& job, const Request& request) {
  return job.all_gpus() > 0 && !names_gpus(request) && request.gres_per_task.empty() &&
         gpus_in(request.gres_per_job) == 0;
}

bool inherits_node_memory(const Request& request) {
  return request.memory && request.memory->per == request::MemoryPer::node &&
         request.memory->mb > 0 && !request.given.on_command_line(Opt::mem);
}

/// Only what the script could have said better counts: a step that asks for what it needs and finds
/// it in use waits rightly.
Causes causes_of(const Facts& facts, const Job& job, const StepSeen& step) {
  Causes causes;
  causes.cpus = !step.request->exact && !step.plan->exact && !step.request->cpus_per_task;
  causes.gpus = wants_all_gpus(job, *step.request);
  causes.memory = inherits_node_memory(*step.request);
  for (const std::uint32_t id : step.plan->waits_for_steps) {
    const StepSeen* holder = find_step(facts, id);
    if (holder == nullptr || holder->request == nullptr) continue;
    causes.cpus = causes.cpus || !holder->plan->exact;
    causes.gpus = causes.gpus || wants_all_gpus(job, *holder->request);
    causes.memory = causes.memory || inherits_node_memory(*holder->request);
  }
  return causes;
}

/// Steps of the script that would run beside this one: those of its line and the other background
/// ones, as a number to divide the job by.
std::size_t steps_beside(const Facts& facts) {
  std::size_t background = 0;
  for (const StepSeen& step : facts.input.steps) {
    if (is_srun(step) && step.command != nullptr && step.command->background) ++background;
  }
  return std::max<std::size_t>(1, background);
}

/// The srun options that give a step its own share.
std::string own_share(const Facts& facts, const Job& job, const StepSeen& step,
                      const Causes& causes) {
  const std::size_t parts = steps_beside(facts);
  const auto& first = job.plan->allocation.nodes.front();
  std::string srun = "srun --exact";
  const std::uint32_t tasks = step.request->ntasks.value_or(1);
  srun += fmt::format(" -n{}", causes.cpus && tasks * parts > job.cpus() ? 1 : tasks);
  if (causes.gpus && !first.gpus().empty()) {
    const std::size_t gpus = std::max<std::size_t>(1, job.all_gpus() / parts);
    const bool by_node = job.request->given.has(Opt::gpus_per_node);
    const bool by_job = job.request->given.has(Opt::gpus);
    srun += by_node  ? fmt::format(" --gpus-per-node={}", gpus)
            : by_job ? fmt::format(" --gpus={}", gpus)
                     : fmt::format(" --gres=gpu:{}", gpus);
  }
  const auto own = gpu_option(*step.request);
  if (!causes.gpus && own && step.request->given.on_command_line(*own)) {
    srun += " " + spelled(*step.request, *own);
  }
  if (causes.memory) {
    const std::size_t here = std::max<std::size_t>(1, (parts + job.nodes() - 1) / job.nodes());
    srun += fmt::format(" --mem={}",
                        text::format_mb(std::max<std::uint64_t>(1, first.memory_mb / here)));
  }
  return srun + " … &";
}

std::string causes_text(const Job& job, const Causes& causes) {
  std::vector<std::string> parts;
  if (causes.cpus) parts.push_back(fmt::format("all {} of the job", count(job.cpus(), "CPU")));
  if (causes.gpus) parts.push_back(fmt::format("all {}", count(job.all_gpus(), "GPU")));
  if (causes.memory) {
    parts.push_back(fmt::format("all {} of memory",
                                text::format_mb(job.plan->allocation.nodes.front().memory_mb)));
  }
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return out;
}

/// Calls fn(step, job, causes) for each step in the background that waits without need.
template <class Fn>
void each_needless_wait(const Facts& facts, Fn&& fn) {
  std::set<int> lines;  // a loop waits in every turn; one finding is enough
  for (const StepSeen& step : facts.input.steps) {
    if (step.command == nullptr || step.request == nullptr || !waited(step)) continue;
    if (!lines.insert(step.command->line).second) continue;
    const Job* job = facts.job_of(step);
    if (job == nullptr || !job->placed()) continue;
    const Causes causes = causes_of(facts, *job, step);
    if (causes.any()) fn(step, *job, causes);
  }
}

void report_wait(const Facts& facts, const StepSeen& step, const Job& job, const Causes& causes,
                 Report& report) {
  std::size_t waiting = 0;
  for (const StepSeen& other : facts.input.steps) waiting += waited(other) ? 1 : 0;
  report.add(
      line_of(step),
      fmt::format("These steps run one after another: each takes {}{}. {} of them {} for the "
                  "one before.",
                  causes_text(job, causes),
                  causes.cpus ? ", because nothing says it needs less" : "", waiting,
                  waiting == 1 ? "waits" : "wait"),
      own_share(facts, job, step, causes));
}

void find_serial_cpus(const Facts& facts, Report& report) {
  each_needless_wait(facts, [&](const StepSeen& step, const Job& job, const Causes& causes) {
    if (causes.cpus) report_wait(facts, step, job, causes, report);
  });
}

void find_serial_memory(const Facts& facts, Report& report) {
  each_needless_wait(facts, [&](const StepSeen& step, const Job& job, const Causes& causes) {
    if (!causes.cpus && causes.memory) report_wait(facts, step, job, causes, report);
  });
}

void find_serial_gpus(const Facts& facts, Report& report) {
  each_needless_wait(facts, [&](const StepSeen& step, const Job& job, const Causes& causes) {
    if (!causes.cpus && !causes.memory && causes.gpus) {
      report_wait(facts, step, job, causes, report);
    }
  });
}

bool starts_work(const script::Command& command) {
  switch (command.launcher) {
    case Launcher::srun:
    case Launcher::mpirun:
    case Launcher::torchrun:
    case Launcher::torch_distributed:
    case Launcher::deepspeed:
    case Launcher::accelerate:
      return true;
    case Launcher::none:
      return !command.words.empty() && is_python(command.words.front());
    case Launcher::salloc:
    case Launcher::sbatch:
      return false;
  }
  return false;
}

/// Follows which chains of a script still run, to know those nobody waited for at its end.
class Unwaited {
 public:
  explicit Unwaited(const script::Script& read) {
    for (const script::Event& event : read.events) follow(read, event);
  }
  /// The first command of each chain that was still running.
  [[nodiscard]] const std::map<std::size_t, const script::Command*>& left() const { return left_; }

 private:
  using Kind = script::Event::Kind;

  void follow(const script::Script& read, const script::Event& event) {
    switch (event.kind) {
      case Kind::start:
        for (const std::size_t chain : event.chains) parent_[chain] = event.chain;
        return;
      case Kind::wait_all:
        for (const auto& [chain, parent] : parent_) {
          if (parent == event.chain) settle(chain, event.chain);
        }
        return;
      case Kind::wait_for:
        if (event.chains.empty()) left_.clear();  // wait -n, most likely in a loop
        for (const std::size_t chain : event.chains) settle(chain, event.chain);
        return;
      case Kind::run:
        run(read.commands[event.command], event.chain);
        return;
    }
  }

  void run(const script::Command& command, std::size_t chain) {
    if (!starts_work(command)) return;
    if (chain != 0) {
      left_.try_emplace(chain, &command);
    } else {
      left_.clear();  // work in the foreground keeps the script alive: a client of a server, say
    }
  }

  /// Somebody waits for `chain`: nothing is left of it, unless that one is in the background too.
  void settle(std::size_t chain, std::size_t waiter) {
    const auto at = left_.find(chain);
    if (at == left_.end()) return;
    if (waiter != 0) left_.try_emplace(waiter, at->second);
    left_.erase(chain);
  }

  std::map<std::size_t, std::size_t> parent_;
  std::map<std::size_t, const script::Command*> left_;
};

void find_no_wait(const Facts& facts, Report& report) {
  if (facts.input.read == nullptr || facts.input.read->truncated) return;
  const Unwaited unwaited(*facts.input.read);
  if (unwaited.left().empty()) return;
  const std::size_t background = unwaited.left().size();
  int line = 0;
  for (const auto& [chain, command] : unwaited.left()) {
    if (line == 0 || command->line < line) line = command->line;
  }
  report.add(
      line,
      fmt::format("{} in the background, and the script ends without waiting: the job ends "
                  "with it, and {} killed.",
                  background == 1 ? "A command runs" : fmt::format("{} commands run", background),
                  background == 1 ? "the command is" : "they are"),
      "wait      (as the last line)");
}

constexpr std::array<Entry, 6> kStepsRules = {{
    {{"B501", Level::error, "A step needs more CPUs than the job has",
      "A step runs inside what the job was given. Tasks × CPUs per task beyond that is refused "
      "with "
      "\"More processors requested than permitted\".",
      "#SBATCH --nodes=2\nsrun -n 4 ./app",
      "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\nsrun "
      "./app"},
     find_too_many_cpus},
    {{"B502", Level::error, "srun refuses this step",
      "The step asks for something the job does not have, or its options contradict what it "
      "inherits "
      "from the job.",
      "#SBATCH --gpus-per-node=4\nsrun --gres=gpu:1 ./app",
      "#SBATCH --gpus-per-node=4\nsrun --gpus-per-node=1 ./app"},
     find_refused_step},
    {{"B503", Level::warning, "Steps in the background run one after another",
      "A step without --exact takes all CPUs of the job on its nodes (and, unless told otherwise, "
      "its "
      "GPUs and memory), so the next one waits until it has ended. Say what each step needs.",
      "#SBATCH --ntasks=4\n#SBATCH --gres=gpu:4\nsrun -n1 ./a &\nsrun -n1 ./b &\nwait",
      "#SBATCH --ntasks=4\n#SBATCH --gres=gpu:4\nsrun --exact -n1 --gres=gpu:1 ./a &\n"
      "srun --exact -n1 --gres=gpu:1 ./b &\nwait"},
     find_serial_cpus},
    {{"B504", Level::warning, "Nobody waits for the background",
      "When the batch script ends, the job ends, and everything still running in it is killed.",
      "srun -n1 ./a &\nsrun -n1 ./b &", "srun -n1 ./a &\nsrun -n1 ./b &\nwait"},
     find_no_wait},
    {{"B505", Level::warning, "Each step inherits all the memory of the job",
      "--mem of the job is handed to every srun through SLURM_MEM_PER_NODE: the first step holds "
      "all "
      "of it and the others wait. Give each step its own --mem, or use --mem-per-cpu in the job.",
      "#SBATCH --ntasks=4\n#SBATCH --mem=64G\nsrun --exact -n1 ./a &\nsrun --exact -n1 ./b &\nwait",
      "srun --exact -n1 --mem=16G ./a &"},
     find_serial_memory},
    {{"B506", Level::warning, "Each step takes all the GPUs of the job",
      "A step that names no GPUs gets all that the job asked for, and steps do not share GPUs.",
      "#SBATCH --gres=gpu:4\nsrun --exact -n1 ./a &\nsrun --exact -n1 ./b &\nwait",
      "srun --exact -n1 --gres=gpu:1 ./a &"},
     find_serial_gpus},
}};

}  // namespace

std::span<const Entry> step_rules() {
  return kStepsRules;
}

}  // namespace berth::lint
