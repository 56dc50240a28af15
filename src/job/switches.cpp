#include "job/switches.h"

#include <algorithm>

#include "job/memory.h"

namespace berth::job {

Time switch_patience(const Job& job, const Policy& policy) {
  const auto& asked = job.what->request.switches;
  if (!asked) return 0;
  const std::uint64_t most = policy.max_switch_wait;
  return static_cast<Time>(std::min(asked->wait_seconds.value_or(most), most));
}

std::optional<Time> any_switches_from(const Job& job, const Policy& policy) {
  const Time patience = switch_patience(job, policy);
  if (patience == 0) return 0;
  if (job.switch_wait_since == 0) return std::nullopt;
  return job.switch_wait_since + patience;
}

void State::wait_for_switches(JobId id, Time now) {
  Job* job = m_->find(id);
  if (job == nullptr || !job->pending() || job->switch_wait_since != 0) return;
  job->switch_wait_since = now;
  job->last_evaluation = now;
  m_->arm(*job);
  m_->touch(*job);
}

}  // namespace berth::job
