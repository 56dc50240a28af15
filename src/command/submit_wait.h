// Waiting for an interactive job to start: what salloc and srun print meanwhile, and what ends the
// wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "command/launch_signals.h"
#include "command/submit_asked.h"
#include "command/submit_link.h"

namespace berth::command {

struct JobWait {
  std::string program;  // "salloc", "srun"
  std::uint32_t job_id = 0;
  std::string token;
  bool quiet = false;
  std::optional<std::chrono::seconds> immediate;  // -I
  std::chrono::milliseconds waited{0};            // out: how long it was in the queue
};

/// The link owns the job: it was submitted over it. The error ends the command; its lines are
/// printed by the caller, its exit code 0 means that nothing is to be said any more.
Result<wire::JobGrant> wait_for_job(ControllerLink& link, SignalFd& signals, JobWait& wait);

/// The same for a job without an owner (salloc --no-shell), which nobody is told about: asks now
/// and then.
Result<wire::JobGrant> watch_job(ControllerLink& link, SignalFd& signals, JobWait& wait);

/// Seconds of -I; nullopt without it.
std::optional<std::chrono::seconds> immediate_of(const request::Request& request);

}  // namespace berth::command
