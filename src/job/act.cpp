// What users and administrators do to jobs: cancel, hold, release, requeue, suspend, resume,
// notify.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "job/memory.h"
#include "job/ranges.h"
#include "text/words.h"

namespace berth::job {
namespace {

constexpr Time kResumeSettles = 2;

/// Indices that a name gives one by one; nullopt: the whole job.
Result<std::optional<Bits>> indices_of(const wire::JobName& name) {
  if (name.has_array_task()) return Bits::of({name.array_task()});
  if (name.array_set().empty()) return std::nullopt;
  auto set = parse_ranges(text::split(name.array_set(), '%').front());
  if (!set) return pass(job_error(JobFault::no_such_job));
  return std::move(*set);
}

}  // namespace

void hold_by(Job& job, const Caller& caller, bool as_user) {
  // What an administrator holds only an administrator lets go.
  const bool stays = job.held && job.held_by_admin && !caller.privileged;
  job.held = true;
  job.held_by_admin = stays || (caller.privileged && !as_user && caller.uid != job.uid);
}

Result<std::vector<JobId>> State::pick(const wire::JobName& name, Time now) {
  Memory& m = *m_;
  auto indices = indices_of(name);
  if (!indices) return pass(std::move(indices.error()));
  if (!*indices) {
    auto out = named(name);
    if (out.empty()) return pass(job_error(JobFault::no_such_job));
    return out;
  }
  std::vector<JobId> out;
  for (const JobId id : m.records_of(name.id())) {
    Job& job = *m.find(id);
    if (!job.array) continue;
    if (job.array->task) {
      if ((*indices)->test(*job.array->task)) out.push_back(id);
      continue;
    }
    for (const std::size_t index : (job.array->rest & **indices).members()) {
      Job& element = m.split(job, static_cast<std::uint32_t>(index));
      m.requeue_place(element, now);
      m.arm(element);
      out.push_back(element.id);
    }
  }
  if (out.empty()) return pass(job_error(JobFault::no_such_job));
  return out;
}

Result<std::vector<JobId>> State::cancel_named(const wire::JobName& name, const Cancel& how,
                                               Time now) {
  Memory& m = *m_;
  auto indices = indices_of(name);
  if (!indices) return pass(std::move(indices.error()));
  std::vector<JobId> targets;
  if (!*indices) {
    targets = named(name);
    const Job* lone = targets.size() == 1 ? m.find(targets.front()) : nullptr;
    if (lone != nullptr && lone->het && lone->het->offset == 0 && !name.has_het_offset()) {
      targets = m.records_of(lone->het->leader);
    }
  } else {
    for (const JobId id : m.records_of(name.id())) {
      Job& job = *m.find(id);
      if (!job.array) continue;
      if (job.array->task) {
        if ((*indices)->test(*job.array->task)) targets.push_back(id);
        continue;
      }
      const Bits wanted = job.array->rest & **indices;
      if (wanted.empty()) continue;
      targets.push_back(id);
      if (wanted.count() == job.array->rest.count() || !job.pending()) continue;
      if (auto own = own_job(&job, how.caller); !own) return pass(std::move(own.error()));
      job.array->rest -= wanted;
      m.touch(job);
      targets.pop_back();
      if (targets.empty()) targets.push_back(0);  // done, but nothing else to do
    }
  }
  if (targets.empty()) return pass(job_error(JobFault::no_such_job));
  std::vector<JobId> done;
  std::optional<Error> first;
  for (const JobId id : targets) {
    if (id == 0) {
      done.push_back(name.id());
      continue;
    }
    const Job* job = m.find(id);
    if (targets.size() > 1 && job != nullptr && ended(job->base)) continue;
    auto result = cancel(id, how, now);
    if (result) {
      done.push_back(id);
    } else if (!first) {
      first = std::move(result.error());
    }
  }
  if (done.empty()) return pass(first ? std::move(*first) : job_error(JobFault::already_done));
  return done;
}

Result<void> State::cancel(JobId id, const Cancel& how, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), how.caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  if (job.flags.completing && job.flags.requeued) {  // not back into the queue after all
    job.flags.requeued = false;
    job.base = Base::cancelled;
    job.ended_by = how.caller.uid;
    m.touch(job);
    m.effect(TellEnded{job.id, "CANCELLED", job.exit_status, job.reason});
    return {};
  }
  if (ended(job.base)) return pass(job_error(JobFault::already_done));
  const bool terminates = !how.signal || (*how.signal == SIGKILL && !how.batch_only && !how.full);
  if (!terminates) {
    if (!job.running || job.base != Base::running) return pass(job_error(JobFault::not_running));
    wire::SignalStep message;
    message.set_job_id(job.id);
    message.set_attempt(job.attempt);
    message.set_signal(*how.signal);
    message.set_batch(how.batch_only || how.full);
    message.set_full(how.full);
    message.set_batch_only(how.batch_only);
    m.effect(SignalNodes{std::move(message), job.nodes});
    return {};
  }
  job.ended_by = how.caller.uid;
  const bool whole = job.het && job.het->offset == 0;
  const std::string reason = job.running ? "None" : job.reason;
  // Right after a resume a job is killed outright, without a word in its output: recorded so.
  const bool just_resumed = job.base == Base::running && job.suspend_time != 0 &&
                            now - job.suspend_time <= kResumeSettles;
  const std::string cause = just_resumed ? "" : "SIGNAL";
  const bool at_once = how.signal.has_value() || just_resumed;
  if (whole) {
    m.end_whole(job, Base::cancelled, reason, cause, at_once, now);
  } else if (job.running) {
    m.end(job, Base::cancelled, reason, cause, at_once, now);
  } else {
    m.end_pending(job, Base::cancelled, now);
  }
  return {};
}

Result<void> State::cancel_step(JobId id, std::uint32_t step, const Cancel& how, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), how.caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  const bool open = job.running && job.running->open_steps.contains(step);
  if (!open)
    return pass(job_error(ended(job.base) ? JobFault::already_done : JobFault::no_such_job));
  if (!how.signal || *how.signal == SIGKILL) return end_step(id, step, how.caller, "SIGNAL", now);
  wire::SignalStep message;
  message.set_job_id(job.id);
  message.set_attempt(job.attempt);
  message.set_step_id(step);
  message.set_signal(*how.signal);
  m.effect(SignalNodes{std::move(message), job.running->open_steps.at(step).nodes});
  return {};
}

Result<void> State::hold(JobId id, const Caller& caller, bool user_hold, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  if ((*found)->base != Base::pending) return pass(job_error(JobFault::not_pending));
  for (Job* part : m.components_of(**found)) {
    hold_by(*part, caller, user_hold);
    part->priority = 0;
    m.drop_plan(*part);
    m.set_reason(*part, part->held_by_admin ? "JobHeldAdmin" : "JobHeldUser");
    m.requeue_place(*part, now);
    m.arm(*part);
    m.touch(*part);
  }
  return {};
}

Result<void> State::release(JobId id, const Caller& caller, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  if ((*found)->base != Base::pending) return pass(job_error(JobFault::not_pending));
  const std::vector<Job*> parts = m.components_of(**found);
  const bool by_admin = std::ranges::any_of(parts, &Job::held_by_admin);
  if (by_admin && !caller.privileged) return pass(job_error(JobFault::not_yours));
  for (Job* part : parts) {
    if (!part->held && part->priority > 0) continue;
    part->held = part->held_by_admin = false;
    part->flags.requeue_hold = part->flags.special_exit = false;
    part->priority_fixed = false;
    part->priority = m.policy.priority.multifactor ? m.current_priority(*part, now)
                                                   : priority_of(m.natural_priority(), part->nice);
    m.set_reason(*part, "None");
    m.requeue_place(*part, now);
    m.arm(*part);
    m.touch(*part);
  }
  return {};
}

Result<void> State::requeue(JobId id, const Caller& caller, bool hold, Time now, bool special) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  if (!job.batch) return pass(job_error(JobFault::not_batch));
  if (!job.requeue || (job.het && job.het->offset > 0)) return pass(job_error(JobFault::disabled));
  if (job.base == Base::pending && !job.flags.completing) {
    return pass(fail(Code::bad_value, "Job is pending execution").error());
  }
  if (job.flags.completing) return pass(job_error(JobFault::already_done));
  for (Job* part : m.components_of(job)) {
    ++part->restarts;
    part->flags.requeued = true;
    part->begin_time = hold ? 0 : now + Time{m.policy.requeue_delay};
    part->begin_is_length = true;
    if (hold) {
      hold_by(*part, caller, false);
      part->flags.requeue_hold = !special;
      part->flags.special_exit = special;
    }
    const std::string reason = hold ? "job_requeued_in_held_state" : "BeginTime";
    if (part->running) {
      m.end(*part, Base::pending, reason, "JOB REQUEUE", false, now);
    } else {
      part->reason = reason;
      m.back_to_queue(*part, now);
    }
  }
  return {};
}

Result<void> State::suspend(JobId id, const Caller& caller, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  if ((*found)->base != Base::running) return pass(job_error(JobFault::not_running));
  for (Job* part : m.components_of(**found)) {
    if (part->base != Base::running) continue;
    part->base = Base::suspended;
    part->suspend_time = now;
    part->running->gpu_idle.suspended();
    m.effect(Suspend{part->id, part->attempt, part->nodes, false});
    m.arm(*part);
    m.touch(*part);
  }
  return {};
}

Result<void> State::resume(JobId id, const Caller& caller, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  if ((*found)->base != Base::suspended) return pass(job_error(JobFault::not_suspended));
  if ((*found)->parked()) {
    if (unpark(id, now)) return {};
    return fail(Code::bad_value, std::string(fault_text(JobFault::disabled)),
                fmt::format("job {} has its CPUs; it goes on when they are free",
                            (*found)->preempted ? (*found)->preempted->by : 0));
  }
  for (Job* part : m.components_of(**found)) {
    if (part->base != Base::suspended) continue;
    part->base = Base::running;
    part->seconds_suspended += now - part->suspend_time;
    part->running->gpu_idle.resumed(part->suspend_time, now);
    part->suspend_time = now;
    m.effect(Suspend{part->id, part->attempt, part->nodes, true});
    m.arm(*part);
    m.touch(*part);
    m.retry_waiting(*part, now);
  }
  return {};
}

Result<void> State::notify(JobId id, const Caller& caller, const std::string& text, Time /*now*/) {
  auto found = own_job(m_->find(id), caller);
  if (!found) return pass(std::move(found.error()));
  if (!(*found)->running) return pass(job_error(JobFault::not_running));
  m_->effect(Notice{id, {Severity::plain, text}});
  return {};
}

}  // namespace berth::job
