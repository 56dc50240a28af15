// For tests: the list of openings that is kept says the same as one that is made anew.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/horizon.h"

namespace berth::schedule::testing {

inline std::vector<Opening> as_seen(const std::vector<Opening>& openings, Time now) {
  std::vector<Opening> out = openings;
  for (Opening& one : out) one.at = std::max(one.at, now + 1);
  // Of several ends on one node at one moment the last tells what is free.
  std::ranges::stable_sort(out, {}, [](const Opening& one) { return std::pair(one.at, one.node); });
  std::vector<Opening> last;
  for (const Opening& one : out) {
    if (!last.empty() && last.back().at == one.at && last.back().node == one.node) last.pop_back();
    last.push_back(one);
  }
  return last;
}

inline const std::vector<Opening>& follow(Horizon& kept, const job::State& state, Time now) {
  std::vector<Timeline::Use> uses;
  return kept.follow(state, [&](NodeIndex node) -> const std::vector<Timeline::Use>& {
    uses = running_uses(state, node, now);
    return uses;
  });
}

inline void expect_up_to_date(Horizon& kept, const job::State& state, Time now) {
  Horizon anew;
  EXPECT_EQ(as_seen(follow(kept, state, now), now), as_seen(follow(anew, state, now), now))
      << "at " << now;
}

}  // namespace berth::schedule::testing
