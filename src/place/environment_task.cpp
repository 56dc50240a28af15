// The environment of one task of a step, and of ranks that mpirun starts.
#include <fmt/format.h>

#include <algorithm>

#include "place/environment.h"
#include "place/environment_values.h"
#include "place/local_ranks.h"
#include "request/kills_step.h"
#include "text/hostlist.h"

namespace berth::place {
namespace {

void put_or_drop(Environment& env, const char* name, const std::string& value) {
  if (value.empty()) {
    env.erase(name);
  } else {
    env[name] = value;
  }
}

/// Counts and names of the step; node lists are in node order, also where NODEID is not.
void put_step(Environment& env, const cluster::Cluster& cluster, const StepPlan& step) {
  std::vector<const StepNode*> nodes;
  for (const StepNode& node : step.nodes) nodes.push_back(&node);
  std::ranges::sort(nodes, {}, [](const StepNode* node) { return node->share.node; });
  std::vector<std::string> names;
  std::vector<std::uint32_t> tasks;
  for (const StepNode* node : nodes) {
    names.push_back(cluster.nodes[node->share.node].name);
    tasks.push_back(static_cast<std::uint32_t>(node->ranks.size()));
  }
  env["SLURM_STEP_ID"] = env["SLURM_STEPID"] = std::to_string(step.id);
  env["SLURM_STEP_NODELIST"] = text::compress_hostlist(names);
  env["SLURM_STEP_NUM_NODES"] = env["SLURM_NNODES"] = std::to_string(names.size());
  env["SLURM_STEP_NUM_TASKS"] = env["SLURM_NTASKS"] = env["SLURM_NPROCS"] =
      std::to_string(step.ntasks);
  env["SLURM_STEP_TASKS_PER_NODE"] = env["SLURM_TASKS_PER_NODE"] = repetition_list(tasks);
  // A number that srun was not given itself stays the job's, also where the step has another.
  if (step.ntasks_per_node) {
    const bool uniform = !tasks.empty() && std::ranges::count(tasks, tasks.front()) ==
                                               static_cast<std::ptrdiff_t>(tasks.size());
    env["SLURM_NTASKS_PER_NODE"] = std::to_string(uniform ? tasks.front() : *step.ntasks_per_node);
  }
}

void put_request(Environment& env, const JobFacts& job, const StepPlan& step) {
  put_or_drop(env, "SLURM_CPUS_PER_TASK",
              step.cpus_per_task ? std::to_string(*step.cpus_per_task) : "");
  if (!step.tres_per_task.empty()) env["SLURM_TRES_PER_TASK"] = step.tres_per_task;
  if (step.gpu_bind && !step.launcher) {
    env["SLURM_TRES_BIND"] = env["SLURMD_TRES_BIND"] = step.gpu_bind->text;
  }
  put_or_drop(env, "SLURM_DISTRIBUTION", step.distribution);
  put_or_drop(env, "SLURM_DIST_PLANESIZE", step.plane_size ? std::to_string(*step.plane_size) : "");
  const bool inherited = env.contains("SLURM_MEM_PER_NODE") || env.contains("SLURM_MEM_PER_CPU") ||
                         env.contains("SLURM_MEM_PER_GPU");
  if (!inherited) put_memory(env, job.memory);
}

void put_cpu_bind(Environment& env, const StepNode& node) {
  if (!node.cpu_bind_type) {
    for (const char* name : {"SLURM_CPU_BIND", "SLURM_CPU_BIND_TYPE", "SLURM_CPU_BIND_LIST",
                             "SLURM_CPU_BIND_VERBOSE"}) {
      env.erase(name);
    }
    return;
  }
  const std::string verbosity = node.cpu_bind_verbose ? "verbose" : "quiet";
  env["SLURM_CPU_BIND"] =
      fmt::format("{},{}{}", verbosity, *node.cpu_bind_type, node.cpu_bind_list);
  env["SLURM_CPU_BIND_TYPE"] = *node.cpu_bind_type;
  env["SLURM_CPU_BIND_LIST"] = node.cpu_bind_list;
  env["SLURM_CPU_BIND_VERBOSE"] = verbosity;
}

void put_gpus(Environment& env, const cluster::Cluster& cluster, const StepPlan& step,
              const TaskPlan& task, const StepNode& node) {
  if (task.gpus.empty()) return;
  const Bits all = node.share.gpus();
  // Without a binding the fence is the step's own, and the positions in it are 0, 1, …
  const Bits visible = visible_ids(cluster, task.gpus, all, step.allow_task_sharing);
  put_visible_gpus(env, cluster.nodes[task.node], node.share, task.gpus, visible);
  env["SLURM_STEP_GPUS"] = task.gpus.list();
}

void put_node(Environment& env, const cluster::Cluster& cluster, std::uint32_t node_id,
              const StepNode& at) {
  const cluster::Node& node = cluster.nodes[at.share.node];
  env["SLURM_NODEID"] = std::to_string(node_id);
  env["SLURM_GTIDS"] = fmt::format("{}", fmt::join(at.ranks, ","));
  env["SLURMD_NODENAME"] = node.name;
  put_network_address(env, cluster, at.share.node);
  env["SLURM_CPUS_ON_NODE"] = std::to_string(at.share.cores.count() * node.threads_per_core);
}

}  // namespace

StepEnvironment::StepEnvironment(const cluster::Cluster& cluster, const JobFacts& job,
                                 const StepPlan& step, const Environment& inherited)
    : cluster_(cluster), step_(step), common_(inherited) {
  // Hydra's own variables are for mpiexec in the script; a task is already where it should be.
  drop_hydra_arguments(common_);
  put_job(common_, cluster, job);
  if (const auto name = inherited.find("SLURM_JOB_NAME"); name != inherited.end()) {
    common_["SLURM_JOB_NAME"] = name->second;
  }
  common_["SLURM_OOM_KILL_STEP"] = request::out_of_memory_kills_step(job.request) ? "1" : "0";
  put_step(common_, cluster, step);
  put_request(common_, job, step);
  for (const StepNode& at : step.nodes) local_shares_.push_back(local_share(job, at));
}

/// What ranks may divide there. Daemons of mpirun are shown no GPUs that were asked for by task,
/// but the ranks that they start have these as all others of the job.
std::string StepEnvironment::local_share(const JobFacts& job, const StepNode& at) const {
  const cluster::NodeShare* share = &at.share;
  if (step_.launcher) {
    const auto& held = job.allocation.nodes;
    const auto whole = std::ranges::find(held, at.share.node, &cluster::NodeShare::node);
    if (whole != held.end()) share = &*whole;
  }
  return local_share_text(cluster_.nodes[at.share.node], *share,
                          cluster_.settings.constrain_devices, step_.launcher);
}

Environment StepEnvironment::of(const TaskPlan& task) const {
  Environment env = of_node(task.node_id);
  for (auto& [name, value] : own(task)) env[name] = std::move(value);
  return env;
}

Environment StepEnvironment::of_node(std::uint32_t node_id) const {
  Environment env = common_;
  if (node_id >= step_.nodes.size()) return env;
  const StepNode& at = step_.nodes[node_id];
  put_cpu_bind(env, at);
  put_node(env, cluster_, node_id, at);
  env[kLocalShareVariable] = local_shares_[node_id];
  // What an outer step said of its tasks.
  drop_gpus(env, cluster_.nodes[at.share.node]);
  env.erase("BERTH_TASK_CPUS");
  return env;
}

Environment StepEnvironment::own(const TaskPlan& task) const {
  Environment env;
  if (task.node_id >= step_.nodes.size()) return env;
  put_gpus(env, cluster_, step_, task, step_.nodes[task.node_id]);
  env["SLURM_PROCID"] = std::to_string(task.rank);
  env["SLURM_LOCALID"] = std::to_string(task.local_id);
  if (task.bound) env["BERTH_TASK_CPUS"] = task.cpus.hex();
  return env;
}

Environment task_environment(const cluster::Cluster& cluster, const JobFacts& job,
                             const StepPlan& step, const TaskPlan& task,
                             const Environment& inherited) {
  return StepEnvironment(cluster, job, step, inherited).of(task);
}

Environment mpirun_rank_environment(const cluster::Cluster& cluster, const JobFacts& job,
                                    std::size_t node_position) {
  const StepPlan daemons = place_launcher_step(cluster, job);
  const Environment script = batch_environment(cluster, job);
  if (node_position >= daemons.tasks.size()) return script;
  return task_environment(cluster, job, daemons, daemons.tasks[node_position], script);
}

}  // namespace berth::place
