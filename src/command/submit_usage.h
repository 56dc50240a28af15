// --help, --usage and --version of sbatch, salloc and srun, made from the option table.
#pragma once

#include <string>

#include "request/request.h"

namespace berth::command {

/// All options of the command with what they mean.
std::string help_text(request::Command command);
/// The same as a line of brackets.
std::string usage_text(request::Command command);

/// Prints what was asked for; false when nothing was.
bool print_answer(request::Command command, bool help, bool usage, bool version);

}  // namespace berth::command
