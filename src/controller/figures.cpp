#include "controller/figures.h"

#include <algorithm>

namespace berth::controller {

void Figures::count_cycle(const schedule::Figures& seen, std::uint64_t took, std::int64_t now) {
  jobs_started += seen.started;
  if (seen.examined == 0) return;
  ++cycles;
  cycle_last_microseconds = took;
  cycle_most_microseconds = std::max(cycle_most_microseconds, took);
  cycle_microseconds += took;
  cycle_last_examined = seen.examined;
  cycle_examined += seen.examined;
  if (!seen.backfill) return;
  ++passes;
  pass_last_microseconds = took;
  pass_most_microseconds = std::max(pass_most_microseconds, took);
  pass_microseconds += took;
  pass_last_examined = seen.examined;
  pass_examined += seen.examined;
  pass_last_at = now;
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

void Figures::count_request(wire::Kind kind, std::uint32_t uid, std::uint64_t took) {
  RequestFigures& of_kind = requests[kind];
  ++of_kind.count;
  of_kind.microseconds += took;
  if (users.size() >= kMostUsers && !users.contains(uid)) return;
  RequestFigures& of_user = users[uid];
  ++of_user.count;
  of_user.microseconds += took;
}

void Figures::reset(std::int64_t now) {
  const std::int64_t kept = started;
  *this = {};
  started = kept;
  since = now;
}

}  // namespace berth::controller
