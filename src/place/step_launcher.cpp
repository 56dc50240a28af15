// What step_launcher.h promises.
#include "place/step_launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "place/cpu_bind.h"
#include "place/step_request.h"

namespace berth::place {
namespace {

using request::Opt;
using request::Request;

/// The request without what the job handed on for its ranks: the daemons are counted by node.
Request without_ranks(const Request& srun) {
  Request out = srun;
  const bool tasks_said = srun.given.on_command_line(Opt::ntasks);
  if (!tasks_said) out.ntasks.reset();
  out.ntasks_per_node.reset();
  out.ntasks_per_gpu.reset();
  out.cpus_per_task.reset();
  out.distribution.reset();
  if (!tasks_said && !srun.given.on_command_line(Opt::nodes) && !srun.nodelist.empty()) {
    const std::set<std::string> listed(srun.nodelist.begin(), srun.nodelist.end());
    const auto count = static_cast<std::uint32_t>(listed.size());
    out.nodes = request::NodeCount{count, count, false, {}};
  }
  return out;
}

Error several_on_a_node(const JobFacts& job, std::string asked) {
  return step_error(job, Code::invalid_task_count,
                    fmt::format("--external-launcher starts one task on each node, for the daemons "
                                "of mpirun; {}",
                                asked));
}

}  // namespace

Result<std::vector<std::size_t>> launcher_nodes(const cluster::Cluster& cluster,
                                                const JobFacts& job, const Request& srun,
                                                std::vector<Message>& warnings) {
  if (srun.given.on_command_line(Opt::ntasks_per_node) && srun.ntasks_per_node > 1U) {
    return pass(several_on_a_node(
        job, fmt::format("--ntasks-per-node={} was asked for", *srun.ntasks_per_node)));
  }
  const auto ask = ask_in_job(cluster, job, without_ranks(srun), warnings);
  if (!ask) return pass(ask.error());
  if (*ask->tasks > ask->max_nodes) {
    return pass(several_on_a_node(
        job, fmt::format("{} tasks on {} nodes were asked for", *ask->tasks, ask->max_nodes)));
  }
  const auto& held = job.allocation.nodes;
  const auto reached = [&](std::size_t at) { return cluster.nodes[held[at].node].usable; };
  std::vector<std::size_t> out;
  for (const std::size_t at : ask->listed) {
    if (!reached(at)) {
      return pass(step_error(job, Code::node_config_unavailable,
                             fmt::format("{} is down", cluster.nodes[held[at].node].name)));
    }
    if (out.size() < ask->max_nodes) out.push_back(at);
  }
  for (std::size_t at = ask->relative.value_or(0); at < held.size(); ++at) {
    if (out.size() >= ask->max_nodes) break;
    if (reached(at) && std::ranges::find(out, at) == out.end()) out.push_back(at);
  }
  if (out.empty() || out.size() < ask->min_nodes) {
    return pass(step_error(job, Code::node_config_unavailable,
                           fmt::format("{} of the {} nodes that were asked for can be reached",
                                       out.size(), ask->min_nodes)));
  }
  std::ranges::sort(out);
  return out;
}

StepPlan launcher_plan(const cluster::Cluster& cluster, const JobFacts& job,
                       const std::vector<std::size_t>& positions) {
  StepPlan plan;
  plan.verdict = StepVerdict::starts;
  plan.counted = false;
  plan.launcher = true;
  plan.ntasks = static_cast<std::uint32_t>(positions.size());
  plan.cpus_per_task = job.request.cpus_per_task;
  plan.distribution = "cyclic";
  // Devices by task belong to tasks that the launcher's ranks are not.
  const bool gpus = !job.request.gres_per_node.empty() || !job.request.gres_per_job.empty() ||
                    !job.request.gres_per_socket.empty();
  for (const std::size_t position : positions) {
    const cluster::NodeShare& share = job.allocation.nodes[position];
    const cluster::Node& node = cluster.nodes[share.node];
    StepNode at;
    at.share = share;
    at.share.memory_mb = 0;
    if (!gpus) at.share.gres.clear();
    const auto id = static_cast<std::uint32_t>(plan.nodes.size());
    at.ranks = {id};
    const NodeBinding binding = unplaced(node, share.cores, 1);
    at.cpu_bind_type = binding.type;
    at.cpu_bind_list = binding.list;
    TaskPlan task;
    task.rank = task.node_id = id;
    task.node = share.node;
    task.bound = binding.bound && cluster.settings.task_affinity;
    task.cpus = binding.masks.front();
    task.gpus = at.share.gpus();
    plan.nodes.push_back(std::move(at));
    plan.tasks.push_back(std::move(task));
  }
  return plan;
}

}  // namespace berth::place
