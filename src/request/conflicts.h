// Options that exclude or replace one another, before any value is used. The rules are those of the
// client commands: what is not from the environment counts as chosen now and beats what is.
#pragma once

#include "request/parse.h"

namespace berth::request {

/// Erases options that lose; the error is Slurm's line and says in the hint where the two came
/// from.
Result<void> resolve_conflicts(Command command, bool step, OptionSet& options);

/// After the Request is built: what depends on values.
Result<void> check_request(const Request& request, bool step);

}  // namespace berth::request
