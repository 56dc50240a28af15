// Runs a program and takes what it prints.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::device {

/// The standard output of a program that ends well within the time. One that does not is killed.
/// The error holds the first line it wrote to standard error.
Result<std::string> output_of(const std::vector<std::string>& words, std::size_t most_bytes,
                              std::chrono::milliseconds within);

}  // namespace berth::device
