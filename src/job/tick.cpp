// What is due by time.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"

namespace berth::job {
namespace {

void warn(State::Memory& m, Job& job) {
  job.running->warned = true;
  wire::SignalStep message;
  message.set_job_id(job.id);
  message.set_attempt(job.attempt);
  message.set_signal(job.what->warn_signal);
  message.set_batch(job.what->warn_batch_only);
  message.set_batch_only(job.what->warn_batch_only);
  m.effect(SignalNodes{std::move(message), job.nodes});
}

void check_steps(State::Memory& m, Job& job, Time now) {
  for (auto& [id, step] : job.running->open_steps) {
    if (!step.limit_at || *step.limit_at > now || step.ending) continue;
    step.ending = true;
    step.cause = "TIME LIMIT";
    m.effect(EndStep{job.id, job.attempt, id, step.nodes, step.cause, false});
  }
}

void running_due(State::Memory& m, Job& job, Time now) {
  if (job.deadline > 0 && job.deadline <= now) {
    m.end_whole(job, Base::deadline, "DeadLine", "", false, now);
    return;
  }
  if (job.preempted && job.preempted->until != 0 && job.preempted->until <= now) {
    m.give_way(job, now);
    return;
  }
  if (job.reservation_over > 0 && job.reservation_over <= now) {
    m.end_whole(job, Base::timeout, "TimeLimit", "TIME LIMIT", false, now);
    return;
  }
  if (job.base != Base::running) return;
  if (const auto limit = job.limit_at(); limit && !job.preempted) {
    if (*limit + m.over_time(job) <= now) {
      m.end_whole(job, Base::timeout, "TimeLimit", "TIME LIMIT", false, now);
      return;
    }
    if (job.what->warn_signal != 0 && !job.running->warned &&
        *limit - Time{job.what->warn_seconds} <= now) {
      warn(m, job);
    }
  }
  check_steps(m, job, now);
  if (const Time due = m.gpu_idle_due(job); due > 0 && due <= now) m.ask_gpu_idle(job);
}

void due(State::Memory& m, Job& job, Time now) {
  if (job.flags.completing) {
    m.wake_all();  // CompleteWait is over
    return;
  }
  if (ended(job.base) && !job.flags.completing) {
    m.forget(job.id);
    return;
  }
  if (job.pending()) {
    // A deadline that the time limit does not leave room for any more is over as well.
    const Time needed =
        job.time_limit_decided && job.time_limit_minutes ? Time{*job.time_limit_minutes} * 60 : 0;
    if (job.deadline > 0 && job.deadline <= now + (job.deadline <= now ? 0 : needed)) {
      m.set_reason(job, "DeadLine");
      m.end_pending(job, Base::deadline, now);
      return;
    }
    if (m.dependencies.contains(job.id)) {
      m.evaluate(job, now);
    } else if (!m.keys.contains(job.id)) {
      m.requeue_place(job, now);
    } else {
      job.last_evaluation = now;  // it is looked at now
      m.wake.arrived.push_back(job.id);
    }
  } else if (job.running && !job.flags.completing) {
    running_due(m, job, now);
  }
  if (m.jobs.contains(job.id)) m.arm(job);
}

}  // namespace

std::optional<Time> State::next_deadline() const {
  std::optional<Time> next;
  if (!m_->timers.empty()) next = m_->timers.begin()->first;
  for (const auto& [index, when] : m_->node_timers) next = std::min(next.value_or(when), when);
  if (!m_->power.due.empty()) {
    next = std::min(next.value_or(m_->power.due.begin()->first), m_->power.due.begin()->first);
  }
  if (m_->priority_due) next = std::min(next.value_or(*m_->priority_due), *m_->priority_due);
  if (m_->found_due) next = std::min(next.value_or(*m_->found_due), *m_->found_due);
  if (m_->look_at) next = std::min(next.value_or(*m_->look_at), *m_->look_at);
  if (m_->reservation_due) {
    next = std::min(next.value_or(*m_->reservation_due), *m_->reservation_due);
  }
  return next;
}

void State::tick(Time now) {
  Memory& m = *m_;
  if (m.reservation_due && *m.reservation_due <= now) m.reservations_tick(now);
  std::vector<JobId> jobs;
  for (const auto& [when, id] : m.timers) {
    if (when > now) break;
    jobs.push_back(id);
  }
  for (const JobId id : jobs) {
    Job* job = m.find(id);
    m.disarm(id);
    if (job != nullptr) due(m, *job, now);
  }
  if (m.priority_due && *m.priority_due <= now) m.reprioritise(now);
  if (m.look_at && *m.look_at <= now) {
    m.look_at.reset();
    m.wake_all();
  }
  m.power_tick(now);
  if (m.found_due && *m.found_due <= now) m.found_tick(now);
  std::vector<cluster::NodeIndex> silent;
  for (const auto& [index, when] : m.node_timers) {
    if (when <= now) silent.push_back(index);
  }
  for (const cluster::NodeIndex index : silent) {
    m.node_timers.erase(index);
    NodeState& node = m.nodes[index];
    if (node.responding) continue;
    if (!node.down) {
      node.down = true;
      node.reason = "Not responding";
      node.reason_uid = 0;
      node.reason_time = now;
      m.refresh_usable(index);
      m.touch_node(index);
    }
    const std::set<JobId> here = node.jobs;
    for (const JobId id : here) {
      if (Job* job = m.find(id)) m.fail_on_node(*job, m.cluster.nodes[index].name, now);
    }
    m.leases_count(index, now);
  }
}

}  // namespace berth::job
