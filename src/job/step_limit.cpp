// `scontrol update StepId=… TimeLimit=`.
#include <algorithm>

#include "job/memory.h"

namespace berth::job {

Result<void> State::change_step(JobId id, std::uint32_t step, std::optional<std::uint32_t> minutes,
                                const Caller& caller, Time now) {
  auto found = own_job(m_->find(id), caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  if (!job.running) return pass(job_error(JobFault::not_running));
  const auto at = job.running->open_steps.find(step);
  if (at == job.running->open_steps.end()) return pass(job_error(JobFault::no_such_job));
  Step& open = at->second;
  const bool longer = open.time_limit_minutes && (!minutes || *minutes > *open.time_limit_minutes);
  if (longer && !caller.privileged) return pass(job_error(JobFault::not_yours));
  open.time_limit_minutes = minutes;
  open.limit_at.reset();
  if (minutes) open.limit_at = std::max(open.start + Time{*minutes} * 60, now);
  m_->arm(job);
  ++m_->version;
  return {};
}

}  // namespace berth::job
