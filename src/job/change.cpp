// `scontrol update JobId=`.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"
#include "text/words.h"

namespace berth::job {
namespace {

/// What the job may run without a word of an administrator; unset = for ever.
std::optional<std::uint32_t> own_limit(const State::Memory& m, const Job& job) {
  if (job.time_limit_decided) return job.time_limit_minutes;
  std::optional<std::uint32_t> least;
  for (const std::string_view name : text::split(job.partition, ',')) {
    const cluster::Partition* partition = m.cluster.find_partition(name);
    if (partition == nullptr || !partition->max_time_minutes) continue;
    if (!least || *partition->max_time_minutes < *least) least = partition->max_time_minutes;
  }
  return least;
}

/// Users may lower their limit; more time is for administrators to give.
Result<void> set_time_limit(State::Memory& m, Job& job, std::optional<std::uint32_t> minutes,
                            const Caller& caller, Time now) {
  const auto own = own_limit(m, job);
  const bool longer = own && (!minutes || *minutes > *own);
  if (longer && !caller.privileged) return pass(job_error(JobFault::not_yours));
  job.time_limit_minutes = minutes;
  job.time_limit_decided = true;
  if (job.running) job.running->facts.time_limit_minutes = minutes;
  if (job.running && job.what->warn_signal != 0) {
    const auto limit = job.limit_at();
    job.running->warned =
        limit && *limit - Time{job.what->warn_seconds} <= now && job.running->warned;
  }
  m.wake_all();
  return {};
}

Result<void> set_priority(Job& job, std::uint32_t priority, const Caller& caller) {
  if (!caller.privileged && priority > job.priority) return pass(job_error(JobFault::not_yours));
  job.priority = priority;
  job.priority_fixed = priority != 0;
  if (priority == 0) {
    hold_by(job, caller, false);
    job.reason = job.held_by_admin ? "JobHeldAdmin" : "JobHeldUser";
  } else if (job.held) {
    job.held = job.held_by_admin = false;
    job.reason = "None";
  }
  return {};
}

Result<void> set_nice(Job& job, std::int32_t nice, const Caller& caller) {
  if (nice < job.nice && !caller.privileged) return pass(job_error(JobFault::not_yours));
  if (job.priority > 0 && !job.priority_fixed) {
    const std::int64_t wanted = std::int64_t{job.priority} + job.nice - nice;
    job.priority = static_cast<std::uint32_t>(std::clamp<std::int64_t>(wanted, 1, UINT32_MAX - 2));
  }
  job.nice = nice;
  return {};
}

/// What was changed before and is not changed again: the last word on an option counts.
std::vector<std::string> still_counting(const std::vector<std::string>& before,
                                        const std::vector<std::string>& now) {
  const auto option = [](const std::string& word) {
    return std::string_view(word).substr(0, word.find('='));
  };
  std::vector<std::string> out;
  for (const std::string& word : before) {
    const bool again = std::ranges::any_of(
        now, [&](const std::string& other) { return option(other) == option(word); });
    if (!again) out.push_back(word);
  }
  return out;
}

}  // namespace

Result<void> State::change(JobId id, const JobChange& change, const Caller& caller, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  if (ended(job.base) && !change.is_comment()) return pass(job_error(JobFault::already_done));
  const bool queue_change =
      change.priority || change.nice || change.begin_time || change.dependency;
  if (queue_change && job.base != Base::pending) return pass(job_error(JobFault::not_pending));
  if (change.admin_comment && !caller.privileged) return pass(job_error(JobFault::not_yours));
  if (change.priority) {
    if (auto done = set_priority(job, *change.priority, caller); !done) return done;
  }
  if (change.nice) {
    if (auto done = set_nice(job, *change.nice, caller); !done) return done;
  }
  if (change.time_limit_minutes) {
    auto done = set_time_limit(m, job, *change.time_limit_minutes, caller, now);
    if (!done) return done;
  }
  if (change.end_time) {
    if (!job.running) return pass(job_error(JobFault::not_running));
    const Time left = std::max<Time>(*change.end_time - job.start_time - job.seconds_suspended, 60);
    auto done = set_time_limit(m, job, static_cast<std::uint32_t>((left + 59) / 60), caller, now);
    if (!done) return done;
  }
  if (change.gpu_idle_seconds) {
    if (auto done = m.set_gpu_idle(job, *change.gpu_idle_seconds, caller); !done) return done;
  }
  if (change.dependency) {
    auto done = m.set_dependency(job, *change.dependency, true, now);
    if (!done) return done;
    if (ended(job.base)) return {};
  }
  if (change.comment) job.comment = *change.comment;
  if (change.admin_comment) job.admin_comment = *change.admin_comment;
  if (change.requeue) job.requeue = *change.requeue;
  if (change.begin_time) {
    job.begin_time = *change.begin_time;
    job.begin_is_length = change.begin_is_length;
  }
  if (change.deadline) {
    job.deadline = *change.deadline;
    job.deadline_is_length = change.deadline_is_length;
  }
  if (change.array_throttle) {
    if (!job.array) return pass(job_error(JobFault::no_such_job));
    for (const JobId one : m.records_of(job.array->job_id)) {
      Job& record = *m.find(one);
      record.array->throttle = *change.array_throttle;
      m.touch(record);
    }
    m.wake_all();
  }
  if (job.pending()) m.requeue_place(job, now);
  m.arm(job);
  m.touch(job);
  return {};
}

Result<void> State::update_words(JobId id, const std::vector<std::string>& words,
                                 const wire::Asked& asked, const Caller& caller, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  if (ended(job.base)) return pass(job_error(JobFault::already_done));
  if (job.het) return pass(job_error(JobFault::disabled));
  std::vector<std::string> all = still_counting(job.overrides, words);
  all.insert(all.end(), words.begin(), words.end());
  std::vector<Message> warnings;
  auto read = m.read(asked, all, caller, warnings);
  if (!read) return pass(std::move(read.error()));
  const std::shared_ptr<const Submission>& what = read->front();
  const std::string partitions = what->request.partitions.empty()
                                     ? job.partition
                                     : fmt::format("{}", fmt::join(what->request.partitions, ","));
  if (auto may = m.check_moved(job, *what, partitions, caller); !may) return may;
  if (job.pending()) {
    const place::JobPlan plan =
        place::place_job(m.cluster, *m.usage, what->request, place::Detail::verdict);
    if (plan.verdict == place::Verdict::never) return pass(plan.error);
  } else if (what->shape != job.what->shape) {
    return pass(job_error(JobFault::not_pending));  // what it runs on cannot be changed
  }
  const bool other_limit = what->request.time_limit != job.what->request.time_limit;
  if (what->text(request::Opt::switches) != job.what->text(request::Opt::switches)) {
    job.switch_wait_since = 0;
  }
  if (what->reservation != job.what->reservation) job.reservation_gone = false;
  job.overrides = std::move(all);
  job.what = what;
  if (job.pending()) {
    job.partition = partitions;
    if (other_limit && what->request.time_limit) {
      job.time_limit_minutes = *what->request.time_limit;
      job.time_limit_decided = true;
    }
    m.requeue_place(job, now);
    m.wake_all();
  }
  m.arm(job);
  m.touch(job);
  return {};
}

}  // namespace berth::job
