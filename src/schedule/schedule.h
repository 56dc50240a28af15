// Which pending jobs start now: in order, with backfill that never delays the first job that waits.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "job/state.h"

namespace berth::schedule {

struct Figures {
  std::size_t examined = 0;  // jobs looked at
  std::size_t placed = 0;    // calls of place_job
  std::size_t started = 0;
  bool backfill = false;  // a whole pass was made
};

struct Options {
  std::size_t depth = 1000;      // jobs that are placed in one pass
  std::size_t examined = 20000;  // jobs that are looked at in one pass
  /// Starts further away are not shown as planned. The first job that waits is not delayed all the
  /// same.
  std::uint32_t backfill_window_minutes = 1440;
  /// Jobs that get a planned start in one go, and how many seconds lie between two such goes. The
  /// first job that waits has one at any time.
  std::size_t planned = 50;
  job::Time plan_interval = 5;
};

/// Looks at what State::take_wake() says and starts what may start. Call after every batch of
/// events; cheap when nothing changed. Keep one for the life of the State: it remembers what does
/// not fit while nothing is freed, so that a submission looks at the new job alone.
class Scheduler {
 public:
  Scheduler();
  ~Scheduler();
  Figures run(job::State& state, job::Time now, const Options& options = {});

 private:
  class Pass;
  std::unique_ptr<Pass> pass_;
  job::Time planned_at_ = 0;
};

/// The same without memory: always a whole pass.
Figures run(job::State& state, job::Time now, const Options& options = {});

/// When the job would start if nothing else came (--test-only, squeue --start); 0 = not known.
job::Time expected_start(const job::State& state, const request::Request& request, job::Time now,
                         place::JobPlan* plan = nullptr);

}  // namespace berth::schedule
