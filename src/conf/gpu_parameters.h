// SlurmdParameters that say how GPUs are watched and fenced (berth's own).
#pragma once

#include <chrono>

#include "base/result.h"
#include "conf/daemon_keys.h"

namespace berth::conf {

struct GpuParameters {
  /// gpu_probation=SECONDS: how long a GPU has to be well after an Xid before it is given out
  /// again.
  std::chrono::seconds probation{60};
  /// gpu_poll=MILLISECONDSms: how often GPUs are looked at, at least once a second.
  std::chrono::milliseconds poll{1000};
  /// gpu_mem=kill: a step that has more of a GPU's memory than its job asked for (--gpu-mem) is
  /// ended; gpu_mem=watch: it is named.
  bool ends_over_users = false;
  /// gpu_fence=step: tasks that are bound to GPUs may open all of their step; gpu_fence=task: only
  /// their own. What `srun --gres-flags` says counts more.
  bool step_fence = false;
};

Result<GpuParameters> gpu_parameters(const Parameters& node);

}  // namespace berth::conf
