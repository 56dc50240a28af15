// Asking for a step and waiting until other steps of the job make room for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "command/launch_signals.h"
#include "command/submit_link.h"

namespace berth::command {

struct StepWait {
  wire::CreateStep ask;
  std::string token;          // of the job that srun made itself; "" in another's job
  std::vector<Message> told;  // warnings that were printed already
  bool quiet = false;
  std::optional<std::chrono::seconds> immediate;
};

/// The error's lines are to be printed by the caller.
Result<wire::StepGrant> wait_for_step(ControllerLink& link, SignalFd& signals,
                                      const StepWait& wait);

}  // namespace berth::command
