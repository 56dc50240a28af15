// Jobs come to an end: told, nodes asked to end it, resources free when the last node has said so;
// or back into the queue.
#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "job/memory.h"
#include "place/step_request.h"
#include "wire/step_ids.h"

namespace berth::job {

void State::Memory::set_exit(Job& job, std::int32_t status) {
  job.exit_status = status;
  touch(job);
}

void State::Memory::end_pending(Job& job, Base base, Time now) {
  leave_queue(job.id);
  drop_dependency(job.id);
  job.waits.close(now);
  job.base = base;
  job.start_time = job.end_time = now;
  drop_plan(job);
  arm(job);
  touch(job);
  effect(TellEnded{job.id, std::string(base_name(base)), job.exit_status, job.reason});
  dependents_of(job, now);
}

void State::Memory::drop_steps(Job& job) {
  for (const WaitingStep& waiting : job.running->waiting) {
    effect(RefuseStep{waiting.key, place::step_error(job.running->facts, Code::job_completed)});
  }
  job.running->waiting.clear();
}

void State::Memory::end(Job& job, Base base, std::string reason, std::string cause, bool at_once,
                        Time now) {
  if (!job.running || job.flags.completing) return;
  if (job.base == Base::suspended) job.seconds_suspended += now - job.suspend_time;
  job.base = base;
  job.reason = std::move(reason);
  job.reason_text.clear();
  job.end_time = now;
  job.end_cause = cause;
  job.flags.completing = true;
  job.flags.configuring = false;
  Running& running = *job.running;
  running.not_gone.clear();
  std::vector<std::string> asked;
  const bool nowhere_yet = waits_for_power(job);
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    nodes[share.node].completing.insert(job.id);
    if (!reachable(share.node)) {
      if (!nowhere_yet) lose_sight(job, share.node, now);
      continue;
    }
    asked.push_back(cluster.nodes[share.node].name);
    running.not_gone.insert(asked.back());
  }
  for (const auto& [name, share] : running.leaving) running.not_gone.insert(name);
  drop_steps(job);
  touch(job);
  if (!asked.empty()) effect(EndJob{job.id, job.attempt, asked, std::move(cause), at_once});
  if (ended(base)) {
    effect(TellEnded{job.id, std::string(base_name(base)), job.exit_status, job.reason});
  }
  arm(job);
  if (running.not_gone.empty()) all_gone(job, now);
}

void State::Memory::end_whole(Job& job, Base base, const std::string& reason,
                              const std::string& cause, bool at_once, Time now) {
  for (Job* part : components_of(job)) {
    part->ended_by = job.ended_by;
    if (part->id != job.id) part->exit_status = job.exit_status;
    if (part->running) {
      end(*part, base, reason, cause, at_once, now);
    } else if (part->pending()) {
      end_pending(*part, base, now);
    }
  }
}

void State::Memory::all_gone(Job& job, Time now) {
  Running& running = *job.running;
  if (!running.released) usage->release(held(job));
  running.released = true;
  forget_giving_way(job);
  count_licenses(job, false);
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    NodeState& node = nodes[share.node];
    node.jobs.erase(job.id);
    node.completing.erase(job.id);
    node.last_busy = now;
    power_idle(job, share.node, now);
  }
  for (auto& [id, step] : running.open_steps) store_step(job, step, "CANCELLED", now);
  keep_late_steps(job);
  job.running.reset();
  holding.erase(job.id);
  job.flags.completing = false;
  wake_all();
  if (!job.reservation.empty()) reservation_due = now;  // it may be unused now
  if (job.flags.requeued) {
    back_to_queue(job, now);
  } else {
    arm(job);
    touch(job);
    dependents_of(job, now);
  }
}

void State::Memory::back_to_queue(Job& job, Time now) {
  job.base = Base::pending;
  // Back in the queue it is a held job like any other: recorded so.
  job.flags.requeued = job.flags.requeue_hold = false;
  job.allocation = {};
  job.nodes.clear();
  job.reservation.clear();
  job.reservation_over = 0;
  job.start_time = job.end_time = 0;
  job.eligible_time = 0;
  job.accrue_since = job.accrued = 0;
  job.waits = {};
  job.exit_status = job.derived_exit_status = 0;
  if (!job.what->request.time_limit) job.time_limit_decided = false;
  if (!job.what->request.gpu_idle_seconds) job.gpu_idle_decided = job.gpu_idle_by_admin = false;
  if (job.what->request.time_min && job.what->request.time_limit) {
    job.time_limit_minutes = *job.what->request.time_limit;  // it may have been shortened
  }
  job.partition = job.what->request.partitions.empty()
                      ? job.partition
                      : fmt::format("{}", fmt::join(job.what->request.partitions, ","));
  if (job.held) job.priority = 0;
  requeue_place(job, now);
  arm(job);
  touch(job);
}

void State::Memory::end_to_requeue(Job& job, bool held, bool special, const std::string& cause,
                                   Time now, std::optional<Time> delay) {
  ++job.restarts;
  job.flags.requeued = true;
  job.begin_time = held ? 0 : now + delay.value_or(Time{policy.requeue_delay});
  job.begin_is_length = true;
  std::string reason = held ? "job_requeued_in_held_state" : "BeginTime";
  job.held = job.held || held;
  job.flags.requeue_hold = held && !special;
  job.flags.special_exit = special;
  if (!held && job.restarts - job.preemptions > policy.max_batch_requeue) {
    job.held = true;
    job.flags.requeue_hold = true;
    reason = "JobHoldMaxRequeue";
  }
  end(job, Base::pending, reason, cause, cause == "NODE FAILURE", now);
}

void State::Memory::fail_on_node(Job& job, const std::string& node, Time now) {
  if (!job.running) return;
  Running& running = *job.running;
  const auto index = cluster.find_node(node);
  const bool lost = !index || !reachable(*index);
  if (job.flags.completing && !lost && running.not_gone.contains(node)) return;  // it will say so
  const bool left = leave_node(job, node);
  if (left && !job.flags.completing) {
    if (lost && index) lose_sight(job, *index, now);
    return;
  }
  if (job.flags.completing) {
    if (running.not_gone.erase(node) > 0 && lost && index) lose_sight(job, *index, now);
    if (running.not_gone.empty()) all_gone(job, now);
    return;
  }
  job.failed_node = node;
  if (job.what->no_kill && job.nodes.size() > 1 && (!job.batch || job.nodes.front() != node)) {
    running.not_begun.erase(node);
    std::vector<std::uint32_t> hit;
    for (auto& [id, step] : running.open_steps) {
      if (step.open_nodes.erase(node) > 0) step.system_failure = true;
      if (step.open_nodes.empty()) hit.push_back(id);
    }
    for (const std::uint32_t id : hit) close_step(job, running.open_steps.at(id), now);
    touch(job);
    effect(Notice{job.id, {Severity::error, fmt::format("Node failure on {}", node)}});
    retry_waiting(job, now);  // those that waited for it need not any more
    return;
  }
  effect(Notice{job.id, {Severity::error, fmt::format("Node failure on {}", node)}});
  if (!job.batch || !job.requeue || job.het) {
    end_whole(job, Base::node_fail, "NodeDown", "NODE FAILURE", true, now);
    return;
  }
  end_to_requeue(job, false, false, "NODE FAILURE", now);
}

void State::Memory::drain_unfit(const std::string& node, const std::string& reason, Time now) {
  const auto index = cluster.find_node(node);
  if (!index || nodes[*index].drain) return;
  effect(Log{fmt::format("node {} is drained: {}; when that is mended: scontrol update nodename={} "
                         "state=resume",
                         node, cut_text(reason, kMostReason), node),
             "node " + node});
  drain(*index, reason, now);
}

void State::Memory::launch_failed_on(Job& job, const std::string& node, Time now) {
  if (!job.running || job.flags.completing) return;
  job.failed_node = node;
  job.flags.launch_failed = true;
  if (!job.batch) {
    end_whole(job, Base::failed, "JobLaunchFailure", "", true, now);
    return;
  }
  // The script runs on the first node: where another one failed it may have begun.
  const bool begun = job.nodes.front() != node || (job.het && job.het->offset > 0);
  if (begun) return fail_on_node(job, node, now);
  for (Job* part : components_of(job)) {
    if (part->running) end_to_requeue(*part, false, false, "", now, Time{0});
  }
}

bool State::Memory::runs_on(const Job& job, std::uint32_t attempt, std::string_view node) const {
  if (!job.running || job.attempt != attempt) return false;
  const auto index = cluster.find_node(node);
  if (!index) return false;
  return nodes[*index].jobs.contains(job.id) || nodes[*index].completing.contains(job.id) ||
         job.running->leaving.contains(std::string(node));
}

void State::job_gone(const wire::JobGone& message, Time now) {
  Memory& m = *m_;
  m.effect(Forget{message.node(), message.job_id(), message.attempt(), std::nullopt});
  if (!message.trouble().empty()) node_trouble(message.node(), message.trouble(), now);
  Job* job = m.find(message.job_id());
  if (job != nullptr && job->attempt == message.attempt()) {
    m.ended_there(*job, message.node(), now);
  }
  if (job == nullptr || !m.runs_on(*job, message.attempt(), message.node())) return;
  if (m.leave_node(*job, message.node()) && !job->flags.completing) {
    m.touch(*job);
    return;
  }
  if (!job->flags.completing) {
    // The node gave the job up on its own.
    m.fail_on_node(*job, message.node(), now);
  }
  if (!job->running) return;
  job->running->not_gone.erase(message.node());
  if (const auto index = m.cluster.find_node(message.node())) {
    m.nodes[*index].completing.erase(job->id);
  }
  m.touch(*job);
  if (job->running->not_gone.empty()) m.all_gone(*job, now);
}

void State::job_begun(const wire::JobBegun& message, Time now) {
  Memory& m = *m_;
  Job* job = m.find(message.job_id());
  if (job == nullptr || !m.runs_on(*job, message.attempt(), message.node())) {
    m.effect(EndJob{message.job_id(), message.attempt(), {message.node()}, "", true});
    return;
  }
  const bool unfit =
      message.has_refusal() && message.refusal().code() == code_name(Code::node_unfit);
  const std::string text = message.refusal().lines().empty()
                               ? "launch failed"
                               : cut_text(message.refusal().lines(0).text(), kMostReason);
  if (unfit) m.drain_unfit(message.node(), text, now);
  if (job->flags.completing) return;
  if (unfit) return m.launch_failed_on(*job, message.node(), now);
  if (message.has_refusal()) {
    m.effect(Log{fmt::format("job {} on {}: {}", job->id, message.node(), text),
                 "node " + message.node()});
    job->flags.launch_failed = true;
    if (message.prolog_failed()) node_trouble(message.node(), "Prolog error", now);
    if (!job->running || job->flags.completing) return;
    if (message.prolog_failed() && job->batch && !job->het) {
      ++job->restarts;
      job->flags.requeued = true;
      job->flags.requeue_hold = true;
      job->held = true;
      m.end(*job, Base::pending, "launch_failed_requeued_held", "", true, now);
    } else {
      m.end_whole(*job, Base::failed, "JobLaunchFailure", "", true, now);
    }
    return;
  }
  if (job->running->not_begun.erase(message.node()) == 0 || !job->running->not_begun.empty())
    return;
  job->running->ready = true;
  job->flags.configuring = false;
  m.touch(*job);
  const auto parts = m.components_of(*job);
  const bool all = std::ranges::all_of(
      parts, [](const Job* part) { return part->running && part->running->ready; });
  if (!all) return;
  m.start_gpu_idle(*parts.front(), now);
  if (job->interactive && !job->detached) m.effect(GrantJob{parts.front()->id});
}

Result<void> State::finish_job(JobId id, const Caller& caller, std::int32_t exit_status, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  if (ended(job.base) || job.flags.completing) return {};
  if (!job.running) {
    m.end_whole(job, Base::cancelled, job.reason, "", false, now);
    return {};
  }
  job.exit_status = exit_status;
  if (exit_status == wire::kOutOfMemoryStatus) {
    m.end_whole(job, Base::out_of_memory, "OutOfMemory", "", false, now);
    return {};
  }
  const std::string reason = exit_reason(exit_status);
  m.end_whole(job, exit_status == 0 ? Base::completed : Base::failed, reason, "", false, now);
  return {};
}

void State::owner_gone(JobId id, Time now) {
  Memory& m = *m_;
  Job* job = m.find(id);
  if (job == nullptr || job->detached || ended(job->base) || job->flags.completing) return;
  job->ended_by = job->uid;
  m.end_whole(*job, Base::cancelled, job->running ? "None" : job->reason, "", false, now);
}

}  // namespace berth::job
