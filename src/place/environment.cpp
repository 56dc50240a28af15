#include "place/environment.h"

#include <fmt/format.h>

#include <algorithm>

#include "place/environment_values.h"
#include "place/local_ranks.h"
#include "request/kills_step.h"
#include "text/words.h"

namespace berth::place {
namespace {

using request::Opt;
using request::Request;

struct OptionVariable {
  Opt option;
  const char* name;
};

/// Options that a job hands on as they were written.
constexpr OptionVariable kTextVariables[] = {
    {Opt::ntasks_per_core, "SLURM_NTASKS_PER_CORE"},
    {Opt::ntasks_per_socket, "SLURM_NTASKS_PER_SOCKET"},
    {Opt::ntasks_per_gpu, "SLURM_NTASKS_PER_GPU"},
    {Opt::ntasks_per_tres, "SLURM_NTASKS_PER_TRES"},
    {Opt::gpus, "SLURM_GPUS"},
    {Opt::gpus_per_node, "SLURM_GPUS_PER_NODE"},
    {Opt::gpus_per_socket, "SLURM_GPUS_PER_SOCKET"},
    {Opt::cpus_per_gpu, "SLURM_CPUS_PER_GPU"},
    {Opt::hint, "SLURM_HINT"},
    {Opt::account, "SLURM_JOB_ACCOUNT"},
    {Opt::qos, "SLURM_JOB_QOS"},
    {Opt::reservation, "SLURM_JOB_RESERVATION"},
    {Opt::dependency, "SLURM_JOB_DEPENDENCY"},
};

void put_size(Environment& env, const JobFacts& job) {
  const Request& request = job.request;
  const auto nodes = static_cast<std::uint32_t>(job.allocation.nodes.size());
  std::optional<std::uint64_t> tasks;
  if (request.ntasks) {
    tasks = request.ntasks;
  } else if (request.ntasks_per_node) {
    tasks = std::uint64_t{*request.ntasks_per_node} * nodes;
  } else if (request.ntasks_per_gpu || !request.gres_per_task.empty()) {
    tasks = job.counts.tasks;
  }
  if (tasks) env["SLURM_NTASKS"] = env["SLURM_NPROCS"] = std::to_string(*tasks);
  if (request.ntasks_per_node) {
    env["SLURM_NTASKS_PER_NODE"] = std::to_string(*request.ntasks_per_node);
  }
  if (request.cpus_per_task) env["SLURM_CPUS_PER_TASK"] = std::to_string(*request.cpus_per_task);
  if (request.threads_per_core) {
    env["SLURM_THREADS_PER_CORE"] = std::to_string(*request.threads_per_core);
  }
  if (request.overcommit) env["SLURM_OVERCOMMIT"] = "1";
}

void put_options(Environment& env, const JobFacts& job) {
  const Request& request = job.request;
  for (const auto& [option, name] : kTextVariables) {
    if (const request::Given* given = request.given.find(option)) env[name] = given->text;
  }
  // It may have asked for several, or was drawn into one.
  if (!job.reservation.empty()) env["SLURM_JOB_RESERVATION"] = job.reservation;
  if (const std::string text = tres_per_task_text(request); !text.empty()) {
    env["SLURM_TRES_PER_TASK"] = text;
  }
  if (job.counts.gpu_bind) env["SLURM_TRES_BIND"] = job.counts.gpu_bind->text;
  if (const request::Given* given = request.given.find(Opt::gpu_bind)) {
    env["SLURM_GPU_BIND"] = given->text;
  }
  if (request.distribution && !request.distribution->text.empty()) {
    env["SLURM_DISTRIBUTION"] = request.distribution->text;
    if (request.distribution->plane_size) {
      env["SLURM_DIST_PLANESIZE"] = std::to_string(*request.distribution->plane_size);
    }
  }
  if (request.export_env && *request.export_env != "ALL") {
    env["SLURM_EXPORT_ENV"] = *request.export_env;
  }
}

/// What batch scripts and salloc's command have in common.
Environment job_environment(const cluster::Cluster& cluster, const JobFacts& job) {
  Environment env;
  put_job(env, cluster, job);
  env["SLURM_NNODES"] = std::to_string(job.allocation.nodes.size());
  env["SLURM_TASKS_PER_NODE"] = repetition_list(job_tasks_per_node(cluster, job));
  put_size(env, job);
  put_options(env, job);
  put_memory(env, job.memory);
  put_launcher_arguments(env);
  return env;
}

/// The batch script as the one task of its own step on the first node.
void put_batch_task(Environment& env, const cluster::Cluster& cluster, const JobFacts& job) {
  if (job.allocation.nodes.empty()) return;
  const cluster::NodeShare& share = job.allocation.nodes.front();
  const cluster::Node& node = cluster.nodes[share.node];
  env["SLURMD_NODENAME"] = env["HOSTNAME"] = node.name;
  put_network_address(env, cluster, share.node);
  env["SLURM_CPUS_ON_NODE"] = std::to_string(share.usable_cpus);
  env["SLURM_GTIDS"] = env["SLURM_PROCID"] = env["SLURM_LOCALID"] = env["SLURM_NODEID"] = "0";
  env["SLURM_STEP_ID"] = env["SLURM_STEPID"] = "-5";
  env[kLocalShareVariable] = local_share_text(node, share, cluster.settings.constrain_devices);
  if (cluster.settings.task_affinity) {
    env["BERTH_TASK_CPUS"] = node.threads_of(share.cores).hex();
  }
  const Bits gpus = share.gpus();
  if (gpus.empty()) return;
  env["SLURM_JOB_GPUS"] = gpus.list();
  put_visible_gpus(env, node, share, gpus, visible_ids(cluster, gpus, gpus, false));
}

}  // namespace

std::string_view exclusive_word(request::Exclusive exclusive) {
  switch (exclusive) {
    case request::Exclusive::no:
    case request::Exclusive::allocation:
      return "NO";
    case request::Exclusive::node:
      return "NODE";
    case request::Exclusive::user:
      return "USER";
    case request::Exclusive::mcs:
      return "MCS";
    case request::Exclusive::topo:
      return "TOPO";
  }
  return "NO";
}

Environment batch_environment(const cluster::Cluster& cluster, const JobFacts& job) {
  Environment env = job_environment(cluster, job);
  put_batch_task(env, cluster, job);
  env["ENVIRONMENT"] = "BATCH";
  env["SLURM_RESTART_COUNT"] = "0";
  env["SLURM_OOM_KILL_STEP"] = request::out_of_memory_kills_step(job.request) ? "1" : "0";
  env["SLURM_JOB_EXCLUSIVE"] = exclusive_word(job.request.exclusive);
  env["SLURM_JOB_OVERSUBSCRIBE"] = job.request.oversubscribe ? "YES" : "NO";
  if (cluster.settings.hydra_bootstrap) put_hydra_arguments(env);
  return env;
}

void add_job_variables(Environment& env, const Environment& job) {
  const std::vector<std::string> unwanted = hydra_variables_against(env);
  for (const auto& [name, value] : job) {
    if (std::ranges::find(unwanted, name) != unwanted.end()) continue;
    const bool launcher = name.starts_with("OMPI_") || name.starts_with("PRTE_") ||
                          name.starts_with("HYDRA_") || name.starts_with("I_MPI_");
    const auto [at, added] = env.try_emplace(name, value);
    if (!added && !launcher) at->second = value;  // a launcher's is the user's own wish
  }
}

Environment salloc_environment(const cluster::Cluster& cluster, const JobFacts& job) {
  return job_environment(cluster, job);
}

Environment het_batch_environment(const cluster::Cluster& cluster,
                                  const std::vector<JobFacts>& components) {
  if (components.empty()) return {};
  Environment env = batch_environment(cluster, components.front());
  if (components.size() == 1) return env;
  env["SLURM_HET_SIZE"] = std::to_string(components.size());
  // Besides what describes a component: what its steps take from it when srun does not say.
  constexpr const char* kByComponent[] = {"SLURM_JOB_ID",
                                          "SLURM_JOB_NODELIST",
                                          "SLURM_JOB_NUM_NODES",
                                          "SLURM_NTASKS",
                                          "SLURM_JOB_CPUS_PER_NODE",
                                          "SLURM_TASKS_PER_NODE",
                                          "SLURM_MEM_PER_NODE",
                                          "SLURM_MEM_PER_CPU",
                                          "SLURM_MEM_PER_GPU",
                                          "SLURM_JOB_NAME",
                                          "SLURM_JOB_PARTITION",
                                          "SLURM_CPUS_PER_TASK",
                                          "SLURM_NTASKS_PER_NODE",
                                          "SLURM_NTASKS_PER_CORE",
                                          "SLURM_NTASKS_PER_SOCKET",
                                          "SLURM_NTASKS_PER_GPU",
                                          "SLURM_NTASKS_PER_TRES",
                                          "SLURM_THREADS_PER_CORE",
                                          "SLURM_GPUS",
                                          "SLURM_GPUS_PER_NODE",
                                          "SLURM_GPUS_PER_SOCKET",
                                          "SLURM_CPUS_PER_GPU",
                                          "SLURM_TRES_PER_TASK",
                                          "SLURM_TRES_BIND",
                                          "SLURM_GPU_BIND",
                                          "SLURM_DISTRIBUTION",
                                          "SLURM_DIST_PLANESIZE",
                                          "SLURM_OVERCOMMIT",
                                          "SLURM_HINT"};
  for (std::size_t i = 0; i < components.size(); ++i) {
    const Environment part = job_environment(cluster, components[i]);
    for (const char* name : kByComponent) {
      const auto at = part.find(name);
      if (at == part.end()) continue;
      for (const char* group : {"HET", "PACK"}) {
        env[fmt::format("{}_{}_GROUP_{}", name, group, i)] = at->second;
      }
    }
  }
  return env;
}

std::string tres_per_task_text(const Request& request) {
  std::vector<std::string> parts;
  if (request.cpus_per_task) parts.push_back(fmt::format("cpu={}", *request.cpus_per_task));
  const request::Given* given = request.given.find(Opt::tres_per_task);
  const bool replaced = given != nullptr && given->level != request::Level::command_line &&
                        request.given.on_command_line(Opt::gpus_per_task);
  if (given != nullptr && !replaced) {
    for (const std::string_view item : text::split(given->text, ',')) {
      if (!item.starts_with("cpu") && !item.empty()) parts.emplace_back(item);
    }
  } else {
    for (const request::GresAsk& ask : request.gres_per_task) {
      parts.push_back(fmt::format("gres/{}{}{}={}", ask.name, ask.type.empty() ? "" : ":", ask.type,
                                  ask.count));
    }
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string repetition_list(const std::vector<std::uint32_t>& values) {
  std::string out;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i;
    while (end < values.size() && values[end] == values[i]) ++end;
    if (!out.empty()) out += ',';
    out += std::to_string(values[i]);
    if (end - i > 1) out += fmt::format("(x{})", end - i);
    i = end;
  }
  return out;
}

}  // namespace berth::place
