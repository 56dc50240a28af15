// Programs that srun itself runs before and after its step: --prolog, --epilog, SrunProlog,
// SrunEpilog.
#pragma once

#include <string>

#include "command/launch_signals.h"
#include "request/request.h"

namespace berth::command {

/// Runs it to its end; its wait(2) status, or -1 when it could not be started. `context` is the
/// value of SLURM_SCRIPT_CONTEXT.
int run_srun_script(const std::string& path, const std::string& context,
                    const request::Environment& environment, const SignalFd& signals);

}  // namespace berth::command
