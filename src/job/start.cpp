// A pending job gets its allocation.
#include <algorithm>

#include "job/memory.h"

namespace berth::job {
namespace {

std::size_t running_elements(const State::Memory& m, const Job& rest) {
  std::size_t count = 0;
  const auto group = m.groups.find(rest.array->job_id);
  if (group == m.groups.end()) return 0;
  for (const JobId id : group->second) {
    const auto at = m.jobs.find(id);
    if (at != m.jobs.end() && at->second.running) ++count;
  }
  return count;
}

place::JobFacts facts_of(const Job& job, const place::JobPlan& plan) {
  place::JobFacts facts;
  facts.id = job.id;
  facts.name = job.what->job_name;
  facts.request = job.what->request;
  facts.counts = plan.counts;
  facts.allocation = plan.allocation;
  facts.partition = plan.partition;
  facts.time_limit_minutes = plan.time_limit_minutes;
  facts.memory = plan.memory;
  facts.reservation = plan.reservation;
  return facts;
}

void allocate(State::Memory& m, Job& job, const place::JobPlan& plan, bool backfilled, Time now) {
  m.leave_queue(job.id);
  m.drop_dependency(job.id);
  m.usage->take(plan.allocation);
  m.take_licenses(job, now);
  job.running = std::make_unique<Running>(facts_of(job, plan));
  m.holding.insert(job.id);
  job.allocation = plan.allocation;
  job.partition = plan.partition;
  if (!job.time_limit_decided) {
    job.time_limit_minutes = plan.time_limit_minutes;
    job.time_limit_decided = true;
  }
  if (plan.shortened_to_minutes) job.time_limit_minutes = plan.shortened_to_minutes;
  job.running->facts.time_limit_minutes = job.time_limit_minutes;
  decide_gpu_idle(m.policy, job);
  job.nodes.clear();
  for (const cluster::NodeShare& share : plan.allocation.nodes) {
    job.nodes.push_back(m.cluster.nodes[share.node].name);
    NodeState& node = m.nodes[share.node];
    node.jobs.insert(job.id);
    node.last_busy = now;
  }
  job.running->node_names = job.nodes;
  job.running->not_begun = {job.nodes.begin(), job.nodes.end()};
  job.reservation = plan.reservation;
  m.reserved_nodes_lost = m.reserved_nodes_lost || !job.reservation.empty();
  job.reservation_over = 0;
  job.base = Base::running;
  job.flags = {};
  job.flags.configuring = true;
  job.waits.close(now);
  job.reason = "None";
  job.reason_text.clear();
  job.dependency.clear();
  m.forget_last_attempt(job);
  ++job.attempt;
  job.lease = lease_of(m.policy, job);
  job.gpu_uses.reset();
  job.start_time = now;
  job.end_time = 0;
  job.exit_status = 0;
  job.derived_exit_status = 0;
  job.ended_by.reset();
  job.preempted.reset();
  job.next_step = 0;
  job.seconds_suspended = 0;
  job.backfilled = backfilled;
  job.planned_start = 0;
  job.planned_nodes.clear();
  job.last_evaluation = now;
  m.open_batch_step(job);
  m.arm(job);
  m.wake_nodes(job, now);
  m.touch(job);
}

/// All components together, unless nodes have to be switched on first.
void begin(State::Memory& m, const std::vector<Job*>& parts) {
  if (m.waits_for_power(*parts.front())) return;
  for (const Job* part : parts) m.effect(BeginJob{part->id, part->nodes});
}

}  // namespace

bool State::eligible(const Job& job, Time now, std::string& reason) const {
  const Memory& m = *m_;
  if (!job.pending()) return false;
  if (!m.keys.contains(job.id)) {
    reason = job.reason;
    return false;
  }
  if (m.not_before(job) > now) {
    reason = "BeginTime";
    return false;
  }
  if (job.is_array_rest() && job.array->throttle > 0 &&
      running_elements(m, job) >= job.array->throttle) {
    reason = "JobArrayTaskLimit";
    return false;
  }
  if (m.view_bars(job)) {
    reason = "Reservation";
    return false;
  }
  if (!m.licenses_free(job, now)) {
    reason = "Licenses";
    return false;
  }
  return true;
}

bool State::waits_for_completing(Time now) const {
  const Memory& m = *m_;
  if (m.policy.complete_wait == 0) return false;
  return std::ranges::any_of(m.holding, [&](JobId id) {
    const Job& job = m.jobs.at(id);
    return job.flags.completing && job.end_time + Time{m.policy.complete_wait} > now;
  });
}

bool State::start(JobId id, const std::vector<place::JobPlan>& plans, bool backfilled, Time now) {
  Memory& m = *m_;
  Job* job = m.find(id);
  if (job == nullptr || !job->pending()) return false;
  std::vector<Job*> parts = m.components_of(*job);
  if (plans.size() != parts.size()) return false;
  for (const place::JobPlan& plan : plans) {
    if (plan.verdict != place::Verdict::now || !m.fits(plan.allocation)) return false;
  }
  if (backfilled) {
    ++m.backfilled.jobs;
    if (job->het) m.backfilled.components += parts.size();
  }
  for (Job* part : parts) part->switch_wait_since = 0;
  if (job->is_array_rest()) {
    const auto task = static_cast<std::uint32_t>(job->array->rest.next());
    Job& element = m.split(*job, task);
    allocate(m, element, plans.front(), backfilled, now);
    begin(m, {&element});
    m.dependents_of(element, now);
    return true;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    allocate(m, *parts[i], plans[i], backfilled, now);
    m.dependents_of(*parts[i], now);
  }
  begin(m, parts);
  return true;
}

}  // namespace berth::job
