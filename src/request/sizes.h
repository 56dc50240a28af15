// How long the text of each option may be: Slurm's limits where it has them.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "request/options.h"

namespace berth::request {

inline constexpr std::size_t kMostPath = 4096;  // PATH_MAX

/// Bytes of the option's text, wherever it comes from.
std::size_t most_bytes(Opt opt);

/// "--job-name: 2000 bytes, at most 1024 are taken".
std::unexpected<Error> too_long(std::string_view what, std::size_t bytes, std::size_t most);

}  // namespace berth::request
