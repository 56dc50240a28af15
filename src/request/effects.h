// Options that are accepted and then change nothing, or not all: where berth cannot do what is
// asked for it says so, in a line that begins "berth: ", or refuses.
#pragma once

#include <vector>

#include "request/parse.h"

namespace berth::request {

/// After conflicts are resolved. Erases what Slurm ignores too, so that nobody is shown it later.
/// What a step has from the variables of its job was told with the job.
Result<void> check_effects(bool step, OptionSet& options, std::vector<Message>& warnings);

}  // namespace berth::request
