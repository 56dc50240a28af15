// scontrol top: a job goes before the others of its owner, by changes of nice alone.
#include <algorithm>

#include "job/memory.h"

namespace berth::job {
namespace {

bool movable(const Job& job) {
  return job.pending() && !job.held && job.priority > 0 &&
         job.partition.find(',') == std::string::npos;
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
  const auto before = [](const Job* a, const Job* b) {
    return QueueKey{0, a->priority, a->submit_time, a->id} <
           QueueKey{0, b->priority, b->submit_time, b->id};
  };
  std::vector<Job*> ahead;  // first to last
  for (auto& [other_id, other] : m.jobs) {
    const bool alike = other.uid == job.uid && other.partition == job.partition &&
                       other.what->account == job.what->account && other.what->qos == job.what->qos;
    if (alike && movable(other) && before(&other, &job)) ahead.push_back(&other);
  }
  if (ahead.empty()) return {};
  std::ranges::sort(ahead, before);
  // It takes the priority of the first, each of these that of the next: others are not passed by.
  // Where priorities are equal and the time of submission decides, those behind it give way by one.
  std::vector<Job*> order = ahead;
  order.insert(order.begin(), &job);
  std::vector<std::uint32_t> wanted;
  for (const Job* one : ahead) wanted.push_back(one->priority);
  wanted.push_back(job.priority);
  bool room = true;
  for (std::size_t i = 1; i < order.size() && room; ++i) {
    const bool earlier =
        order[i - 1]->submit_time < order[i]->submit_time ||
        (order[i - 1]->submit_time == order[i]->submit_time && order[i - 1]->id < order[i]->id);
    const std::uint32_t most = earlier ? wanted[i - 1] : wanted[i - 1] - 1;
    wanted[i] = std::min(wanted[i], most);
    room = wanted[i] > 0;
  }
  if (room) {
    for (std::size_t i = 0; i < order.size(); ++i) give(m, *order[i], wanted[i], now);
  } else {
    // All are at the bottom (no factor has a weight): it alone rises.
    const std::uint32_t first = ahead.front()->priority;
    give(m, job, first == UINT32_MAX ? first : first + 1, now);
  }
  m.wake_all();
  return {};
}

}  // namespace berth::job
