// The output of the few commands that depend on nothing but their words: seq, echo, head,
// scontrol show hostnames, … Everything else is not known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "script/variables.h"

namespace berth::script {

/// True when `name` is one of them, so that $(…) made of such commands can be computed.
bool has_known_output(const std::string& name);

/// What the command prints. `piped` is what the command before it in a pipe printed.
std::optional<std::string> known_output(const std::vector<std::string>& words,
                                        const std::optional<std::string>& piped,
                                        const Variables& variables);

}  // namespace berth::script
