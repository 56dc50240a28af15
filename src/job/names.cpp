// Words for states, flags and refusals, and how a job is called.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "job/memory.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::job {
namespace {

constexpr std::array<std::string_view, 12> kBases = {
    "PENDING", "RUNNING",   "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED",
    "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY",
};

}  // namespace

std::string_view base_name(Base base) {
  return kBases[static_cast<std::size_t>(base)];
}

std::optional<Base> base_of(std::string_view name) {
  const auto* const at = std::ranges::find(kBases, name);
  if (at == kBases.end()) return std::nullopt;
  return static_cast<Base>(at - kBases.begin());
}

std::vector<std::string> flag_names(const Flags& flags) {
  std::vector<std::string> out;
  if (flags.completing) out.emplace_back("COMPLETING");
  if (flags.configuring) out.emplace_back("CONFIGURING");
  if (flags.requeued) out.emplace_back("REQUEUED");
  if (flags.requeue_hold) out.emplace_back("REQUEUE_HOLD");
  if (flags.special_exit) out.emplace_back("SPECIAL_EXIT");
  if (flags.launch_failed) out.emplace_back("LAUNCH_FAILED");
  if (flags.signaling) out.emplace_back("SIGNALING");
  return out;
}

std::string_view fault_text(JobFault fault) {
  switch (fault) {
    case JobFault::no_such_job:
      return "Invalid job id specified";
    case JobFault::not_yours:
      return "Access/permission denied";
    case JobFault::already_done:
      return "Job/step already completing or completed";
    case JobFault::not_pending:
      return "Job is no longer pending execution";
    case JobFault::not_running:
      return "Job is not running";
    case JobFault::not_suspended:
      return "Job is not suspended";
    case JobFault::disabled:
      return "Requested operation is presently disabled";
    case JobFault::bad_dependency:
      return "Job dependency problem";
    case JobFault::bad_update:
      return "Update of this parameter is not supported: %s";
    case JobFault::not_batch:
      return "Only batch jobs are accepted or processed";
  }
  return "";
}

Error job_error(JobFault fault) {
  const Code code = fault == JobFault::already_done     ? Code::job_completed
                    : fault == JobFault::bad_dependency ? Code::dependency_problem
                                                        : Code::bad_value;
  return fail(code, std::string(fault_text(fault))).error();
}

Result<Job*> own_job(Job* job, const Caller& caller) {
  if (job == nullptr) return pass(job_error(JobFault::no_such_job));
  if (!caller.privileged && caller.uid != job->uid) return pass(job_error(JobFault::not_yours));
  return job;
}

std::string_view Submission::text(request::Opt option) const {
  const request::Given* given = request.given.find(option);
  return given == nullptr ? std::string_view() : std::string_view(given->text);
}

std::string Job::shown() const {
  if (het) return fmt::format("{}+{}", het->leader, het->offset);
  if (!array) return std::to_string(id);
  if (array->task) return fmt::format("{}_{}", array->job_id, *array->task);
  const std::string limit = array->throttle > 0 ? fmt::format("%{}", array->throttle) : "";
  return fmt::format("{}_[{}{}]", array->job_id, array->rest.ranges(), limit);
}

std::optional<Time> Job::limit_at() const {
  if (start_time == 0 || !running) return std::nullopt;
  std::optional<Time> limit;
  if (time_limit_minutes) {
    const Time begins = std::max(start_time, running->boot_until);
    limit = begins + Time{*time_limit_minutes} * 60 + seconds_suspended;
  }
  if (!preempted || preempted->how == PreemptMode::suspend || preempted->until == 0) return limit;
  return std::min(limit.value_or(preempted->until), preempted->until);
}

Time Job::not_before() const {
  Time out = begin_time;
  for (const auto& [node, until] : may_run_on) out = std::max(out, until);
  return out;
}

Time Job::over_by() const {
  return flags.completing ? 0 : limit_at().value_or(start_time + kYear);
}

std::string exit_reason(std::int32_t status) {
  const int signal = status & 0x7f;
  if (signal != 0) {
    std::string name;
    if (signal >= SIGRTMIN && signal <= SIGRTMAX) {
      name = fmt::format("Real-time signal {}", signal - SIGRTMIN);
    } else if (const char* known = sigdescr_np(signal)) {
      name = known;
    }
    std::ranges::replace(name, ' ', '_');
    return fmt::format("RaisedSignal:{}({})", signal, name);
  }
  return status == 0 ? "None" : "NonZeroExitCode";
}

}  // namespace berth::job
