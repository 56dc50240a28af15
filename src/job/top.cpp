// scontrol top: a job goes before the others of its owner, by changes of nice alone.
#include <algorithm>

#include "job/memory.h"

namespace berth::job {
namespace {

bool movable(const Job& job) {
  return job.pending() && !job.held && job.priority > 0 &&
         job.partition.find(',') == std::string::npos;
}

/// Jobs that are moved for one; each is stored again.
constexpr std::size_t kMostMoved = 1000;

bool earlier(const Job& a, const Job& b) {
  return a.submit_time != b.submit_time ? a.submit_time < b.submit_time : a.id < b.id;
}

bool before(const Job* a, const Job* b) {
  return a->priority != b->priority ? a->priority > b->priority : earlier(*a, *b);
}

/// Nice such that the job has this priority from now on.
void give(State::Memory& m, Job& job, std::uint32_t priority, Time now) {
  std::int64_t nice = std::int64_t{job.nice} + job.priority - priority;
  if (m.policy.priority.multifactor && !job.priority_fixed) {
    // Reckoned from the sum: the priority as it stands may have been raised to 1.
    const double sum = m.priority_sum(job, now);
    nice = (sum < 1 ? 0 : std::int64_t{priority_of(sum, 0)}) - priority;
  }
  constexpr std::int64_t kMost = INT32_MAX - 2;
  job.nice = static_cast<std::int32_t>(std::clamp(nice, -kMost, kMost));
  job.priority = priority;
  m.requeue_place(job, now);
  m.touch(job);
}

}  // namespace

Result<void> State::top(JobId id, const Caller& caller, Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  if (!caller.privileged && !m.policy.user_top) return pass(job_error(JobFault::not_yours));
  if (job.base != Base::pending) return pass(job_error(JobFault::not_pending));
  if (!movable(job)) return pass(job_error(JobFault::disabled));
  if (m.policy.priority.multifactor) m.reprioritise(now);  // all as old as they are
  std::vector<Job*> alike;
  for (auto& [other_id, other] : m.jobs) {
    if (movable(other) && other.uid == job.uid && other.partition == job.partition &&
        other.what->account == job.what->account && other.what->qos == job.what->qos) {
      alike.push_back(&other);
    }
  }
  std::ranges::sort(alike, before);
  if (alike.front() == &job) return {};
  // The priorities stay where they are, the jobs go on by one place: nobody else is passed by.
  // Where priorities are equal and the time of submission decides, those behind it give way by one.
  std::vector<std::uint32_t> wanted;
  for (const Job* one : alike) wanted.push_back(one->priority);
  std::vector<Job*> order = alike;
  std::erase(order, &job);
  order.insert(order.begin(), &job);
  bool room = true;
  std::size_t changes = 1;
  for (std::size_t i = 1; i < order.size() && room; ++i) {
    const std::uint32_t most =
        earlier(*order[i - 1], *order[i]) ? wanted[i - 1] : wanted[i - 1] - 1;
    wanted[i] = std::min(wanted[i], most);
    if (wanted[i] != order[i]->priority) ++changes;
    room = wanted[i] > 0 && changes <= kMostMoved;
  }
  if (room) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (wanted[i] != order[i]->priority) give(m, *order[i], wanted[i], now);
    }
  } else {
    // All are at the bottom (no factor has a weight), or too many would move: it alone rises.
    const std::uint32_t first = alike.front()->priority;
    give(m, job, first == UINT32_MAX ? first : first + 1, now);
  }
  m.wake_all();
  return {};
}

}  // namespace berth::job
