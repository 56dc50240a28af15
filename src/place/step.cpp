#include "place/step.h"

#include <algorithm>
#include <numeric>

#include "place/layout.h"
#include "place/step_launcher.h"
#include "place/step_place.h"

namespace berth::place {
namespace {

// ---- The layout of the job itself

LayoutAsk job_layout(const JobFacts& job) {
  LayoutAsk ask;
  if (!job.request.distribution) return ask;
  const auto& given = *job.request.distribution;
  ask.method = given.nodes.value_or(request::NodeDist::block);
  ask.pack = given.pack.value_or(false);
  ask.plane_size = given.plane_size.value_or(1);
  return ask;
}

std::uint32_t job_task_cpus(const JobFacts& job) {
  return std::max(job.request.cpus_per_task.value_or(1), 1U);
}

/// Tasks of the job that a node takes, at least one.
std::uint32_t job_tasks_on(const cluster::Cluster& cluster, const JobFacts& job,
                           const cluster::NodeShare& share) {
  std::uint32_t cpus = job_task_cpus(job);
  if (job.request.ntasks_per_core == 1U) {
    cpus = std::max(cpus, cluster.nodes[share.node].threads_per_core);
  }
  std::uint64_t tasks = std::max(share.usable_cpus / cpus, 1U);
  if (job.request.ntasks_per_node && job_layout(job).method != request::NodeDist::plane) {
    tasks = std::min(tasks, std::uint64_t{*job.request.ntasks_per_node} * job_task_cpus(job));
  }
  return static_cast<std::uint32_t>(tasks);
}

/// Tasks that were asked for, else as many as the CPUs hold.
std::uint32_t job_task_count(const cluster::Cluster& cluster, const JobFacts& job) {
  const auto& nodes = job.allocation.nodes;
  std::uint64_t tasks = 0;
  if (job.counts.tasks && (job.request.ntasks || job.request.ntasks_per_gpu)) {
    tasks = *job.counts.tasks;
  } else if (job.request.ntasks_per_node) {
    tasks = std::uint64_t{*job.request.ntasks_per_node} * nodes.size();
  } else {
    for (const auto& share : nodes) tasks += share.usable_cpus / job_task_cpus(job);
  }
  const std::uint64_t most = std::uint64_t{cluster.settings.max_tasks_per_node} * nodes.size();
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(tasks, 1, std::max<std::uint64_t>(most, 1)));
}

}  // namespace

void StepState::start(const StepPlan& plan) {
  // A launch that a node refuses has used up its number too.
  const bool created =
      plan.verdict == StepVerdict::starts || plan.error.code == Code::cpu_bind_failed;
  if (created) next_id_ = std::max(next_id_, plan.id + 1);
  if (plan.verdict == StepVerdict::starts) running_.push_back(plan);
}

void StepState::finish(std::uint32_t step_id) {
  std::erase_if(running_, [&](const StepPlan& plan) { return plan.id == step_id; });
}

StepPlan place_step(const cluster::Cluster& cluster, const JobFacts& job,
                    const request::Request& srun, StepState& state) {
  StepPlan plan;
  plan.id = state.next_id();
  if (srun.external_launcher) {
    const auto nodes = launcher_nodes(cluster, job, srun, plan.warnings);
    if (!nodes) {
      plan.error = nodes.error();
      return plan;
    }
    StepPlan daemons = launcher_plan(cluster, job, *nodes);
    daemons.id = plan.id;
    daemons.warnings = std::move(plan.warnings);
    return daemons;
  }
  auto ask = ask_in_job(cluster, job, srun, plan.warnings);
  if (!ask) {
    plan.error = ask.error();
    return plan;
  }
  state.rotation = place_ask(cluster, job, *std::move(ask), state.running(), state.rotation, plan);
  return plan;
}

StepPlan place_own_step(const cluster::Cluster& cluster, const JobFacts& job,
                        const request::Request& srun) {
  StepPlan plan;
  auto ask = ask_for_own_job(cluster, job, srun);
  if (!ask) {
    plan.error = ask.error();
    return plan;
  }
  place_ask(cluster, job, *std::move(ask), {}, 0, plan);
  return plan;
}

StepPlan place_launcher_step(const cluster::Cluster& cluster, const JobFacts& job) {
  std::vector<std::size_t> all(job.allocation.nodes.size());
  std::iota(all.begin(), all.end(), 0);
  return launcher_plan(cluster, job, all);
}

std::vector<std::uint32_t> job_tasks_per_node(const cluster::Cluster& cluster,
                                              const JobFacts& job) {
  const auto& nodes = job.allocation.nodes;
  LayoutAsk ask = job_layout(job);
  std::vector<std::uint32_t> room;
  if (ask.method == request::NodeDist::arbitrary) {
    for (const auto& share : nodes) room.push_back(share.tasks);
    return room;
  }
  for (const auto& share : nodes) room.push_back(job_tasks_on(cluster, job, share));
  ask.tasks = job_task_count(cluster, job);
  return counts_of(lay_out(ask, room));
}

}  // namespace berth::place
