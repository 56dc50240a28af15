// An explanation as JSON. The shape is documented in docs/explain.md and does not change: fields
// are only added.
#pragma once

#include <string>

#include "explain/explain.h"

namespace berth::command {

/// Ends in a newline. Text that is not UTF-8 has its bad bytes replaced.
std::string render_json(const explain::Explanation& explanation);

}  // namespace berth::command
