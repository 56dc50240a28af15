// `berth explain`: reads the files, asks the pure modules, prints.
#pragma once

#include <span>
#include <string>

#include "request/request.h"

namespace berth::command {

/// `words` are those after "explain". Returns the exit code.
int run_explain(std::span<const std::string> words, const request::Environment& environment);

}  // namespace berth::command
