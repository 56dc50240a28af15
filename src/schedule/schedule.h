// Which pending jobs start now, and when the others will: in order, each as early as it can be
// without delaying one before it (conservative backfill). With Options::planned = 1 only the first
// that waits is safe from delay (EASY).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "job/state.h"

namespace berth::schedule {

/// Of one call of run().
struct Figures {
  std::size_t examined = 0;  // jobs looked at
  std::size_t placed = 0;    // placements worked out
  std::size_t started = 0;
  std::size_t preempted = 0;  // jobs that gave way to others
  bool backfill = false;      // plans were made anew, to the end
  bool unfinished = false;    // there is more to do: call again
};

struct Options {
  /// Jobs that get a planned start, in order; those behind may still start now if they delay none
  /// of them (bf_max_job_test).
  std::size_t planned = 500;
  /// Starts further away are not shown. They are kept free all the same.
  std::uint32_t backfill_window_minutes = 1440;
  /// Seconds between two times that plans are made anew on a large cluster; a small one has them
  /// new after every change (bf_interval).
  job::Time plan_interval = 30;
  /// A job that came less than so many seconds ago gets no plan (bf_min_age_reserve), nor does one
  /// of lower priority (bf_min_prio_reserve), nor one behind so many of its partition that have one
  /// (bf_job_part_count_reserve; 0 = any number).
  job::Time min_age_to_plan = 0;
  std::uint32_t min_priority_to_plan = 0;
  std::size_t planned_in_partition = 0;
  /// Without it nobody overtakes another in its partition (SchedulerType=sched/builtin).
  bool backfill = true;
  /// Nodes and jobs up to which a cluster is small.
  std::size_t small = 2000;
  /// A queue up to this length is looked at job by job: each has its own reason. In a longer one
  /// the first of equal jobs stands for those behind it.
  std::size_t each_one = 1000;
  /// Work after which run() comes back before it is done; 0 = it finishes. A fraction of a
  /// microsecond a unit.
  std::size_t slice = 0;
};

/// A piece of a pass between two turns of a controller: a few milliseconds at most.
inline constexpr std::size_t kServingSlice = 10000;

struct Why;       // why.h
struct Foreseen;  // why.h

bool small(const job::State& state, const Options& options);

/// Looks at what State::take_wake() says and starts what may start. Call after every batch of
/// events; cheap when nothing changed. Keep one for the life of the State.
class Scheduler {
 public:
  Scheduler();
  ~Scheduler();
  Scheduler(Scheduler&&) noexcept;
  Scheduler& operator=(Scheduler&&) noexcept;
  Figures run(job::State& state, job::Time now, const Options& options = {});
  /// Of a pending job: why it does not start, and what would change that.
  Why why(job::State& state, const job::Job& job, job::Time now);
  /// Of a job as it would be (Submitted::trial): when and where it would start.
  Foreseen foresee(job::State& state, const job::Job& trial, job::Time now);

 private:
  struct Memory;
  /// What is known, made ready for questions between two calls of run().
  Memory& ready_to_answer(job::State& state, job::Time now);
  std::unique_ptr<Memory> memory_;
};

/// The same without memory: always a whole pass.
Figures run(job::State& state, job::Time now, const Options& options = {});

}  // namespace berth::schedule
