// A running job gives nodes back. They are free when they have said JobGone, as after its end.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"

namespace berth::job {
namespace {

/// Steps that run on a node that goes are ended; what they hold on the others stays until then.
void end_steps_on(State::Memory& m, Job& job, const std::set<std::string>& gone) {
  Running& running = *job.running;
  for (auto& [id, step] : running.open_steps) {
    const bool hit = std::ranges::any_of(
        step.open_nodes, [&](const std::string& node) { return gone.contains(node); });
    if (!hit || step.ending) continue;
    step.ending = true;
    m.effect(EndStep{job.id, job.attempt, id, step.nodes, "", false});
  }
  place::StepState steps(running.facts);
  for (place::StepPlan plan : running.steps.running()) {
    std::erase_if(plan.nodes, [&](const place::StepNode& node) {
      return gone.contains(m.cluster.nodes[node.share.node].name);
    });
    steps.start(plan);
  }
  steps.number_from(running.steps.next_id());
  running.steps = std::move(steps);
}

}  // namespace

Result<void> State::shrink(JobId id, const std::vector<std::string>& keep, const Caller& caller,
                           Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  if (!job.running || job.flags.completing || job.base != Base::running) {
    return pass(job_error(JobFault::not_running));
  }
  if (job.het) return pass(job_error(JobFault::disabled));
  const std::set<std::string> kept(keep.begin(), keep.end());
  std::set<std::string> gone;
  for (const std::string& node : job.nodes) {
    if (!kept.contains(node)) gone.insert(node);
  }
  if (gone.size() + kept.size() != job.nodes.size() || kept.empty()) {
    return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
                "a running job can only keep nodes that it has");
  }
  if (job.batch && gone.contains(job.nodes.front())) {
    return fail(Code::bad_value, "Requested operation is presently disabled",
                fmt::format("the script runs on {}, which must stay", job.nodes.front()));
  }
  if (gone.empty()) return {};
  Running& running = *job.running;
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    const std::string& name = m.cluster.nodes[share.node].name;
    if (gone.contains(name)) running.leaving.emplace(name, share);
  }
  std::erase_if(job.allocation.nodes, [&](const cluster::NodeShare& share) {
    return gone.contains(m.cluster.nodes[share.node].name);
  });
  std::erase_if(job.nodes, [&](const std::string& node) { return gone.contains(node); });
  running.node_names = job.nodes;
  running.facts.allocation = job.allocation;
  running.gpu_idle.asked.clear();  // some of those who were asked are none of its nodes any more
  for (const std::string& node : gone) running.not_begun.erase(node);
  end_steps_on(m, job, gone);
  std::vector<std::string> told;
  for (const auto& [name, share] : std::map(running.leaving)) {
    if (!gone.contains(name)) continue;
    NodeState& node = m.nodes[share.node];
    if (!m.reachable(share.node)) {
      m.leave_node(job, name);
      m.lose_sight(job, share.node, now);
    } else {
      node.completing.insert(job.id);
      told.push_back(name);
    }
  }
  if (!told.empty()) m.effect(EndJob{job.id, job.attempt, told, "", false});
  m.retry_waiting(job, now);
  m.touch(job);
  return {};
}

bool State::Memory::leave_node(Job& job, const std::string& node) {
  const auto at = job.running->leaving.find(node);
  if (at == job.running->leaving.end()) return false;
  if (!job.running->released) usage->release({{at->second}, job.allocation.whole_nodes});
  if (const auto index = cluster.find_node(node)) {
    nodes[*index].jobs.erase(job.id);
    nodes[*index].completing.erase(job.id);
    touch_node(*index);
    look_at_power(*index, 0);
  }
  job.running->leaving.erase(at);
  wake_all();
  return true;
}

}  // namespace berth::job
