// scontrol: one command, or a prompt.
#pragma once

#include <span>
#include <string>

#include "request/request.h"

namespace berth::command {

/// `words` are those after "scontrol".
int run_scontrol(std::span<const std::string> words, const request::Environment& environment);

}  // namespace berth::command
