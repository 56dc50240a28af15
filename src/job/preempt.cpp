// A job gives way to another: it ends at once or after its grace, goes back into the queue, or is
// suspended and lends its cores. Who gives way to whom is decided by `schedule`.
#include <algorithm>
#include <array>
#include <csignal>

#include "job/memory.h"

namespace berth::job {
namespace {

constexpr auto kWords = std::to_array<std::string_view>({"OFF", "CANCEL", "REQUEUE", "SUSPEND"});

/// Memory and devices stay with a suspended job: it has things there.
cluster::Allocation without_cores(const cluster::Allocation& allocation) {
  cluster::Allocation out{allocation.nodes, false};
  for (cluster::NodeShare& share : out.nodes) share.cores = {};
  return out;
}

void signal_tasks(State::Memory& m, const Job& job, int signal, bool batch_only) {
  wire::SignalStep message;
  message.set_job_id(job.id);
  message.set_attempt(job.attempt);
  message.set_signal(signal);
  message.set_batch(batch_only);
  message.set_batch_only(batch_only);
  m.effect(SignalNodes{std::move(message), job.nodes});
}

/// The warning that --signal asks for comes early; where it asks for none, SIGTERM if there is time
/// left to heed it.
void warn_of_end(State::Memory& m, Job& job, bool grace) {
  const Submission& what = *job.what;
  if (grace) signal_tasks(m, job, SIGCONT, false);
  if (m.policy.preempt.send_user_signal && what.warn_signal != 0 && !job.running->warned) {
    job.running->warned = true;
    signal_tasks(m, job, what.warn_signal, what.warn_batch_only);
  } else if (grace) {
    signal_tasks(m, job, SIGTERM, false);
  }
}

}  // namespace

std::string_view preempt_word(PreemptMode mode) {
  return kWords[static_cast<std::size_t>(mode)];
}

cluster::Allocation State::Memory::held(const Job& job) {
  return job.parked() ? without_cores(job.allocation) : job.allocation;
}

void State::Memory::remember_giving_way(const Job& job) {
  if (!job.gives_way()) return;
  if (job.parked()) {
    parked.insert(job.id);
  } else {
    giving_way[job.preempted->by].insert(job.id);
  }
}

void State::Memory::forget_giving_way(const Job& job) {
  parked.erase(job.id);
  if (!job.preempted) return;
  const auto at = giving_way.find(job.preempted->by);
  if (at == giving_way.end()) return;
  at->second.erase(job.id);
  if (at->second.empty()) giving_way.erase(at);
}

void State::Memory::park(Job& job, bool parks) {
  usage->release(held(job));
  job.running->keeps_no_cores = parks;
  usage->take(held(job));
  if (parks) {
    parked.insert(job.id);
  } else {
    parked.erase(job.id);
  }
}

void State::Memory::give_way(Job& job, Time now) {
  const Preempted way = *job.preempted;
  if (way.how == PreemptMode::suspend) {
    job.preempted->until = 0;
    if (job.base == Base::suspended) effect(Suspend{job.id, job.attempt, job.nodes, false});
    arm(job);
    return;
  }
  if (way.how == PreemptMode::cancel) {
    end_whole(job, Base::preempted, "None", "PREEMPTION", false, now);
    return;
  }
  for (Job* part : components_of(job)) {
    if (!part->running || part->flags.completing) continue;
    ++part->restarts;
    ++part->preemptions;
    part->flags.requeued = true;
    part->begin_time = now + Time{policy.requeue_delay};
    part->begin_is_length = true;
    end(*part, Base::pending, "BeginTime", "PREEMPTION", false, now);
  }
}

std::uint32_t State::tier_of(const std::string& partition) const {
  const auto at = m_->policy.partitions.find(partition);
  return at == m_->policy.partitions.end() ? 1 : at->second.priority_tier;
}

PreemptMode State::preempt_mode(const Job& job) const {
  const Policy& policy = m_->policy;
  if (!policy.preempt.by_tier) return PreemptMode::off;
  const auto at = policy.partitions.find(job.partition);
  const bool own = at != policy.partitions.end() && at->second.preempt_mode;
  const PreemptMode mode = own ? *at->second.preempt_mode : policy.preempt.mode;
  if (mode == PreemptMode::requeue && (!job.batch || !job.requeue)) return PreemptMode::cancel;
  // Components run in step with each other: one that stands still would hold up all of them.
  if (mode == PreemptMode::suspend && job.het) return PreemptMode::off;
  return mode;
}

bool State::preempt(JobId id, JobId by, Time now) {
  Memory& m = *m_;
  Job* first = m.find(id);
  if (first == nullptr || !first->running || first->flags.completing || first->gives_way()) {
    return false;
  }
  const PreemptMode how = preempt_mode(*first);
  if (how == PreemptMode::off) return false;
  if (how == PreemptMode::suspend && first->base != Base::running) return false;
  const auto at = m.policy.partitions.find(first->partition);
  const Time grace = at == m.policy.partitions.end() ? 0 : at->second.grace;
  ++m.preemptions;
  for (Job* part : m.components_of(*first)) {
    if (!part->running || part->flags.completing) continue;
    part->preempted = std::make_unique<Preempted>(Preempted{by, now, 0, how});
    if (how == PreemptMode::suspend) {
      part->preempted->until = now + m.policy.preempt.suspend_grace;
      part->base = Base::suspended;
      part->suspend_time = now;
      part->running->gpu_idle.suspended();
      m.park(*part, true);
      signal_tasks(m, *part, SIGTSTP, false);
    } else {
      const auto limit = part->limit_at();
      if (grace > 0) part->preempted->until = std::min(limit.value_or(now + grace), now + grace);
      warn_of_end(m, *part, grace > 0);
      m.remember_giving_way(*part);
    }
    m.arm(*part);
    m.touch(*part);
  }
  if (how != PreemptMode::suspend && first->preempted->until <= now) m.give_way(*first, now);
  return true;
}

const std::set<JobId>* State::giving_way_to(JobId id) const {
  const auto at = m_->giving_way.find(id);
  return at == m_->giving_way.end() ? nullptr : &at->second;
}

const std::set<JobId>& State::parked() const {
  return m_->parked;
}

bool State::unpark(JobId id, Time now) {
  Memory& m = *m_;
  Job* job = m.find(id);
  if (job == nullptr || !job->parked() || job->flags.completing) return false;
  const bool free = std::ranges::all_of(job->allocation.nodes, [&](const auto& share) {
    const cluster::NodeUsage& used = m.usage->at(share.node);
    return !used.closed && !used.cores.intersects(share.cores) &&
           (!job->allocation.whole_nodes || used.jobs <= 1);
  });
  if (!free) return false;
  m.park(*job, false);
  job->base = Base::running;
  job->seconds_suspended += now - job->suspend_time;
  job->running->gpu_idle.resumed(job->suspend_time, now);
  job->suspend_time = now;
  job->preempted.reset();
  m.effect(Suspend{job->id, job->attempt, job->nodes, true});
  m.arm(*job);
  m.touch(*job);
  m.retry_waiting(*job, now);
  return true;
}

std::uint64_t State::preemptions() const {
  return m_->preemptions;
}

std::map<std::string, std::uint64_t> State::missing_licenses(const Job& job) const {
  std::map<std::string, std::uint64_t> out;
  const auto choices = license_choices(job.what->licenses);
  if (choices.empty()) return out;
  for (const auto& [name, count] : choices.front()) {
    const auto total = m_->policy.licenses.find(name);
    const std::uint64_t all = total == m_->policy.licenses.end() ? 0 : total->second;
    const std::uint64_t wanted = licenses_used(name) + count;
    if (wanted > all) out[name] = wanted - all;
  }
  return out;
}

std::uint64_t State::licenses_of(const Job& job, const std::string& name) {
  const auto counts = license_counts(job.licenses_taken);
  const auto at = counts.find(name);
  return at == counts.end() ? 0 : at->second;
}

void State::look_again(Time at) {
  m_->look_at = std::min(m_->look_at.value_or(at), at);
}

}  // namespace berth::job
