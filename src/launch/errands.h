// What travels in errands between a step's supervisors and its srun: on which channel, and the
// forms of what is small enough to need no message of its own.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::launch {

/// MPI_Publish_name and its like; answered.
inline constexpr const char* kNameChannel = "names";
/// wire::SpawnTasks; answered with the id of the new step ("12.3").
inline constexpr const char* kSpawnChannel = "spawn";
/// The step was stopped on a node (kPaused), or goes on there; not answered.
inline constexpr const char* kPauseChannel = "pause";
inline constexpr std::string_view kPaused = "stopped";
inline constexpr std::string_view kGoesOn = "running";

/// An answer: a value, or why there is none.
std::string answer_text(const Result<std::string>& answer);
/// What answer_text() wrote. Anything else is an answer without a value.
Result<std::string> read_answer(std::string_view text);

}  // namespace berth::launch
