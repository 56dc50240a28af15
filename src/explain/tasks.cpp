// Tasks of steps, ranks of mpirun, workers of torchrun.
#include "explain/tasks.h"

#include <algorithm>
#include <array>

#include "explain/bind.h"
#include "explain/job.h"
#include "explain/processes.h"
#include "lint/launch.h"
#include "place/rank_variables.h"
#include "place/step_het.h"

namespace berth::explain {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

/// Only what Slurm sets or reads: the user's other variables are no news.
Environment of_slurm(Environment env) {
  constexpr std::array<std::string_view, 12> prefixes = {
      "SLURM",       "SRUN_",        "BERTH_",       "CUDA_VISIBLE_",       "ROCR_VISIBLE_",
      "GPU_DEVICE_", "ZE_AFFINITY_", "HIP_VISIBLE_", "OMPI_MCA_plm_slurm_", "PRTE_MCA_plm_slurm_",
      "HYDRA_",      "I_MPI_HYDRA_"};
  std::erase_if(env, [&](const auto& entry) {
    return std::ranges::none_of(
        prefixes, [&](std::string_view prefix) { return entry.first.starts_with(prefix); });
  });
  return env;
}

}  // namespace

std::optional<std::string> find(const Environment& env, const std::string& name) {
  const auto at = env.find(name);
  return at == env.end() ? std::nullopt : std::optional(at->second);
}

bool TaskLister::room(Step& step) {
  if (listed_ < kMaxTasks) {
    ++listed_;
    return true;
  }
  ++step.tasks_not_listed;
  return false;
}

Task TaskLister::task_of(const place::TaskPlan& planned, Environment environment) const {
  Task task;
  task.rank = planned.rank;
  task.node = cluster_.nodes[planned.node].name;
  task.local_id = planned.local_id;
  task.bound = planned.bound;
  task.cpus = planned.cpus;
  task.gpus = planned.gpus;
  task.cuda_visible_devices = find(environment, kVisible);
  if (with_environments_) task.env = std::move(environment);
  for (const Message& message : planned.messages) {
    task.messages.push_back(render(message, "slurmstepd"));
  }
  return task;
}

void TaskLister::list_step(Step& step, const place::JobFacts& job,
                           const std::vector<place::StepPlan>& parts, const Environment& inherited,
                           const std::vector<std::string>& argv) {
  // Under a torchrun it is not the task that is bound, but each of its workers.
  Bind bind(lint::read_torch(argv) ? std::vector<std::string>() : argv);
  const Environment slurm = of_slurm(inherited);
  std::size_t first = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const place::StepPlan whole = place::join_components(parts, part);
    const place::StepEnvironment environment(cluster_, job, whole, slurm);
    const std::size_t end = std::min(first + parts[part].tasks.size(), whole.tasks.size());
    for (; first < end; ++first) {
      if (!room(step)) continue;
      const Environment env = environment.of(whole.tasks[first]);
      Task task = task_of(whole.tasks[first], env);
      const auto rank = place::local_rank_of(env, false);
      if (rank) bind.apply(step, task, env, *rank);
      step.tasks.push_back(std::move(task));
    }
  }
}

void TaskLister::list_mpirun(Step& step, const place::JobFacts& job,
                             const std::vector<std::string>& words,
                             const std::optional<place::StepPlan>& daemons) {
  const MpiLayout layout = mpi_layout(words, place::job_tasks_per_node(cluster_, job));
  if (!layout.problem.empty()) step.notes.push_back(layout.problem);
  const Environment script = place::batch_environment(cluster_, job);
  std::optional<place::StepEnvironment> environment;
  if (daemons) environment.emplace(cluster_, job, *daemons, script);
  Bind bind(words);
  std::vector<Task> like;  // what any rank on a node sees: what the launcher's daemon there got
  std::vector<Environment> told;
  for (std::size_t i = 0; i < job.allocation.nodes.size(); ++i) {
    const cluster::NodeShare& share = job.allocation.nodes[i];
    Task task;
    if (environment && i < daemons->tasks.size()) {
      told.push_back(environment->of(daemons->tasks[i]));
      task = task_of(daemons->tasks[i], told.back());
    } else {
      told.push_back(script);
      task = batch_task(job, script);
      if (!with_environments_) task.env.clear();
    }
    task.bound = false;  // mpirun binds its ranks itself
    task.cpus = cluster_.nodes[share.node].threads_of(share.cores);
    if (task.cuda_visible_devices) task.gpus = share.gpus();
    like.push_back(std::move(task));
  }
  std::vector<std::uint32_t> ranks(like.size());
  for (const std::uint32_t node : layout.node_of_rank) ++ranks[node];
  std::vector<std::uint32_t> next(like.size());
  for (std::uint32_t rank = 0; rank < layout.node_of_rank.size(); ++rank) {
    const std::uint32_t node = layout.node_of_rank[rank];
    const std::uint32_t local_id = next[node]++;
    if (!room(step)) continue;
    Task task = like[node];
    task.rank = rank;
    task.local_id = local_id;
    bind.apply(step, task, told[node], {.rank = local_id, .ranks = ranks[node]});
    step.tasks.push_back(std::move(task));
  }
}

void TaskLister::list_local(Step& step, const Task& like, std::uint32_t count,
                            const std::vector<std::string>& words) {
  Bind bind(words);
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    if (!room(step)) continue;
    Task task = like;
    task.rank = task.local_id = rank;
    bind.apply(step, task, like.env, {.rank = rank, .ranks = count});
    step.tasks.push_back(std::move(task));
  }
}

Task TaskLister::batch_task(const place::JobFacts& job, const Environment& env) const {
  const cluster::NodeShare& share = job.allocation.nodes.front();
  const cluster::Node& node = cluster_.nodes[share.node];
  Task task;
  task.node = node.name;
  task.cpus = node.threads_of(share.cores);
  task.bound = cluster_.settings.task_affinity;
  task.env = env;
  task.cuda_visible_devices = find(env, kVisible);
  if (task.cuda_visible_devices) task.gpus = share.gpus();
  return task;
}

std::string shell_quoted(const std::vector<std::string>& words, bool all) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\|&;<>*?#~") == std::string::npos;
    if (plain && !all) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) {
      if (c == '\'') {
        out += "'\\''";
      } else {
        out += c;
      }
    }
    out += '\'';
  }
  return out;
}

}  // namespace berth::explain
