// Preemption in words: whom a job that waits could take its place from, and who took another's.
#pragma once

#include <string>
#include <vector>

#include "schedule/preempt.h"

namespace berth::schedule {

/// Of a job that gave way: to whom, and how.
std::vector<std::string> facts_of_giving_way(const job::State& state, const job::Job& job,
                                             Time now);

/// Of a pending job: who gives way to it on the nodes it may use, and why the others do not.
std::vector<std::string> facts_of_preempting(const job::State& state, const job::Job& job,
                                             const place::Prepared& prepared, Time now);

}  // namespace berth::schedule
