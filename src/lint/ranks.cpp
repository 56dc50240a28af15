// Ranks by node, for srun from its plan and for mpirun from the job's layout.
#include "lint/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace berth::lint {

std::vector<RanksOnNode> ranks_of_step(const Facts& facts, const place::StepPlan& plan) {
  std::vector<RanksOnNode> result;
  std::map<cluster::NodeIndex, std::size_t> position;
  for (const place::TaskPlan& task : plan.tasks) {
    const auto [at, added] = position.try_emplace(task.node, result.size());
    if (added) result.push_back({.node = facts.node_name(task.node), .gpus = task.gpus});
    RanksOnNode& here = result[at->second];
    here.ranks.push_back(task.rank);
    here.same = here.same && here.gpus == task.gpus;
  }
  return result;
}

std::vector<std::uint32_t> mpirun_slots(const Facts& facts, const Job& job) {
  if (!job.placed() || facts.input.cluster == nullptr) return {};
  place::JobFacts known;
  known.request = *job.request;
  known.counts = job.plan->counts;
  known.allocation = job.plan->allocation;
  known.partition = job.plan->partition;
  known.time_limit_minutes = job.plan->time_limit_minutes;
  known.memory = job.plan->memory;
  return place::job_tasks_per_node(*facts.input.cluster, known);
}

std::vector<RanksOnNode> ranks_of_mpirun(const Facts& facts, const Job& job,
                                         const script::Command& command) {
  std::vector<std::uint32_t> slots = mpirun_slots(facts, job);
  if (slots.empty()) return {};
  const std::span<const std::string> words =
      std::span(command.words).subspan(std::min(command.launcher_at, command.words.size()));
  if (const auto per_node = mpirun_per_node(words)) std::ranges::fill(slots, *per_node);
  const std::uint64_t all = std::accumulate(slots.begin(), slots.end(), std::uint64_t{0});
  constexpr std::uint64_t kMostRanks = 100'000;
  std::uint64_t left = std::min<std::uint64_t>(mpirun_processes(words).value_or(all), kMostRanks);
  const Job without_tasks = job;
  const bool visible = gpus_in(job.request->gres_per_node) + gpus_in(job.request->gres_per_job) +
                           gpus_in(job.request->gres_per_socket) >
                       0;
  std::vector<RanksOnNode> result;
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < slots.size() && left > 0; ++i) {
    RanksOnNode here;
    here.node = facts.node_name(without_tasks, i);
    here.held = job.plan->allocation.nodes[i].gpus();
    if (visible) here.gpus = here.held;
    for (std::uint32_t k = 0; k < slots[i] && left > 0; ++k, --left) here.ranks.push_back(rank++);
    if (!here.ranks.empty()) result.push_back(std::move(here));
  }
  return result;
}

std::optional<Result<place::BindWords>> bind_of(const StepSeen& step) {
  if (is_srun(step)) {
    if (step.request == nullptr) return std::nullopt;
    // Workers of a torchrun in the task are bound then, not the task itself.
    if (read_torch(step.request->argv)) return std::nullopt;
    return read_berth_bind(step.request->argv);
  }
  return is_launcher(step, script::Launcher::mpirun) ? read_berth_bind(step.command->words)
                                                     : std::nullopt;
}

std::vector<std::string> launcher_words(const StepSeen& step) {
  if (step.command == nullptr) return {};
  const auto& words = step.command->words;
  const std::size_t at = std::min(step.command->launcher_at, words.size());
  return {words.begin() + static_cast<std::ptrdiff_t>(at), words.end()};
}

bool is_launcher(const StepSeen& step, script::Launcher launcher) {
  return step.command != nullptr && step.command->launcher == launcher;
}

bool is_srun(const StepSeen& step) {
  return step.command == nullptr ? step.plan != nullptr : is_launcher(step, script::Launcher::srun);
}

std::optional<std::uint64_t> processes_of(const Facts& facts, const StepSeen& step) {
  if (is_srun(step)) {
    if (step.request == nullptr) return std::nullopt;
    const std::optional<std::uint32_t> tasks = step.plan != nullptr && step.plan->ntasks > 0
                                                   ? std::optional(step.plan->ntasks)
                                                   : step.request->ntasks;
    if (!tasks) return std::nullopt;
    const auto torch = read_torch(step.request->argv);
    const std::size_t seen = step.plan != nullptr && !step.plan->tasks.empty()
                                 ? step.plan->tasks.front().gpus.count()
                                 : 1;
    return std::uint64_t{*tasks} * (torch ? torch->processes(seen) : 1);
  }
  if (is_launcher(step, script::Launcher::mpirun)) {
    const Job* job = facts.job_of(step);
    if (job == nullptr) return std::nullopt;
    std::uint64_t sum = 0;
    for (const auto& here : ranks_of_mpirun(facts, *job, *step.command)) sum += here.ranks.size();
    if (sum > 0) return sum;
    const auto asked = mpirun_processes(launcher_words(step));
    return asked ? std::optional<std::uint64_t>(*asked) : std::nullopt;
  }
  return std::nullopt;
}

bool ignores_gpus(const std::vector<std::string>& program) {
  constexpr std::array<std::string_view, 24> kTools = {
      "hostname", "echo",     "mkdir", "cp",    "rsync",  "mv",     "rm",      "date",
      "env",      "printenv", "true",  "false", "sleep",  "ls",     "cat",     "pwd",
      "touch",    "tar",      "unzip", "df",    "ulimit", "whoami", "numactl", "lscpu"};
  if (program.empty()) return false;
  const std::string_view name = script::base_name(program.front());
  return std::ranges::find(kTools, name) != kTools.end();
}

int line_of(const StepSeen& step) {
  return step.command == nullptr ? 0 : step.command->line;
}

std::string text_of(const StepSeen& step) {
  if (step.command != nullptr)
    return shortened(fmt::format("{}", fmt::join(launcher_words(step), " ")));
  if (step.request == nullptr || step.request->argv.empty()) return "srun";
  return shortened("srun … " + step.request->argv.front());
}

}  // namespace berth::lint
