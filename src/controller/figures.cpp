#include "controller/figures.h"

#include <algorithm>
#include <utility>

namespace berth::controller {

void Figures::count_cycle(const schedule::Figures& piece, std::uint64_t took_now, std::size_t queue,
                          std::int64_t now) {
  jobs_started += piece.started;
  pieces.examined += piece.examined;
  pieces.backfill = pieces.backfill || piece.backfill;
  pieces_microseconds += took_now;
  if (piece.unfinished) {
    ++cycle_pieces;
    return;
  }
  const schedule::Figures seen = std::exchange(pieces, {});
  const std::uint64_t took = std::exchange(pieces_microseconds, 0);
  if (seen.examined == 0) return;
  ++cycles;
  cycle_last_microseconds = took;
  cycle_most_microseconds = std::max(cycle_most_microseconds, took);
  cycle_microseconds += took;
  cycle_last_examined = seen.examined;
  cycle_examined += seen.examined;
  cycle_last_queue = queue;
  if (!seen.backfill) return;
  ++passes;
  pass_last_microseconds = took;
  pass_most_microseconds = std::max(pass_most_microseconds, took);
  pass_microseconds += took;
  pass_last_examined = seen.examined;
  pass_examined += seen.examined;
  pass_last_at = now;
  pass_last_queue = queue;
  pass_queue += queue;
}

void Figures::count_commit(std::uint64_t took, bool stored) {
  if (!stored) {
    ++failed_commits;
    return;
  }
  ++commits;
  commit_microseconds += took;
  commit_most_microseconds = std::max(commit_most_microseconds, took);
}

void Figures::reset(const job::Backfilled& backfilled, std::int64_t now) {
  const std::int64_t kept = started;
  *this = {};
  started = kept;
  since = now;
  backfilled_before = backfilled;
}

void Figures::shift(std::int64_t by) {
  ++clock_adoptions;
  since += by;
  started += by;
  if (pass_last_at != 0) pass_last_at += by;
}

}  // namespace berth::controller
