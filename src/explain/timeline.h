// Follows the launcher lines of a script in time: what runs in the foreground ends before the next
// line, what runs in the background starts when it fits, and of running steps the one that started
// first ends first. Internal to the module.
#pragma once

#include <vector>

#include "explain/explain.h"
#include "explain/steps.h"
#include "script/script.h"

namespace berth::explain {

struct Timeline {
  std::vector<Run> runs;   // launcher commands in order of the script
  bool truncated = false;  // more than kMaxSteps
};

/// `environment` is the one the script starts with.
Timeline follow(const Input& input, const std::vector<place::JobFacts>& facts,
                const script::Script& script, const Environment& environment);

}  // namespace berth::explain
