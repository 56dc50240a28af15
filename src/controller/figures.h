// What sdiag shows: counted by the state thread.
#pragma once

#include <cstdint>

#include "job/state.h"
#include "schedule/schedule.h"

namespace berth::controller {

struct Figures {
  std::int64_t since = 0;    // when counting began
  std::int64_t started = 0;  // when the controller started
  std::uint64_t turns = 0;
  std::uint64_t commits = 0;
  std::uint64_t commit_microseconds = 0;
  std::uint64_t commit_most_microseconds = 0;
  std::uint64_t failed_commits = 0;

  std::uint64_t jobs_submitted = 0;
  std::uint64_t jobs_started = 0;
  std::uint64_t jobs_completed = 0;
  std::uint64_t jobs_cancelled = 0;
  std::uint64_t jobs_failed = 0;

  // The scheduler: every look at the queue, and those that were whole passes (backfill)
  std::uint64_t cycles = 0;
  std::uint64_t cycle_last_microseconds = 0;
  std::uint64_t cycle_most_microseconds = 0;
  std::uint64_t cycle_microseconds = 0;
  std::uint64_t cycle_examined = 0;
  std::uint64_t cycle_last_examined = 0;
  std::uint64_t passes = 0;
  std::uint64_t pass_last_microseconds = 0;
  std::uint64_t pass_most_microseconds = 0;
  std::uint64_t pass_microseconds = 0;
  std::uint64_t pass_examined = 0;
  std::uint64_t pass_last_examined = 0;
  std::int64_t pass_last_at = 0;
  std::uint64_t cycle_last_queue = 0;  // jobs in the queue
  std::uint64_t pass_last_queue = 0;
  std::uint64_t pass_queue = 0;
  schedule::Figures pieces;  // of a cycle that is not finished
  std::uint64_t pieces_microseconds = 0;
  std::uint64_t cycle_pieces = 0;     // that were not the last of their cycle
  job::Backfilled backfilled_before;  // as counting began: State counts on

  /// A look at the queue, or a piece of it. `queue`: how many jobs waited.
  void count_cycle(const schedule::Figures& piece, std::uint64_t took_now, std::size_t queue,
                   std::int64_t now);
  void count_commit(std::uint64_t took, bool stored);
  /// Counts from zero; when the controller started stays.
  void reset(const job::Backfilled& backfilled, std::int64_t now);
  /// The clock was set: what is counted by the minute stays so.
  void shift(std::int64_t by);
  std::uint64_t clock_adoptions = 0;

  std::size_t connected_agents = 0;
  std::size_t queued = 0;  // events that waited for the last turn
};

}  // namespace berth::controller
