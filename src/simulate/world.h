// Virtual time over the controller's own code: arrivals are submitted to job::State, the scheduler
// starts them, pretended nodes answer at once, and jobs end when their run time or their limit is
// over. No rule of scheduling, placing or ending jobs is here.
#pragma once

#include <cstdint>
#include <functional>

#include "simulate/figures.h"
#include "simulate/setup.h"
#include "simulate/trace.h"

namespace berth::simulate {

struct Progress {
  std::uint64_t ended = 0;  // jobs that are done with
  std::uint64_t jobs = 0;
  std::int64_t clock = 0;  // seconds since the first submission
};

struct HowToRun {
  /// Called now and then.
  std::function<void(const Progress&)> tell;
  bool keep_priorities = false;  // those of the trace, as sbatch --priority of root
  double limit_factor = 0;       // jobs without a limit get their run time times this; 0 = none
};

/// Runs the whole trace. The same input gives the same outcome.
Outcome run(const Setup& setup, const Trace& trace, const HowToRun& how = {});

}  // namespace berth::simulate
