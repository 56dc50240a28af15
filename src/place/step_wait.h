// Why a step that fits its job does not start now: which resource, on which node, held by which
// step.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "place/step_resources.h"

namespace berth::place {

struct StepWait {
  std::string text;                  // "1 GPU on gpu1 (4 of 4 held by step 0)"
  std::vector<std::uint32_t> steps;  // whose end would help
};

/// `rooms` are those that were found with `running` in place.
StepWait explain_wait(const StepAsk& ask, std::span<const StepRoom> rooms,
                      std::span<const StepPlan> running);

}  // namespace berth::place
