// Times as --begin, --deadline and scontrol write them.
#pragma once

#include <optional>
#include <string_view>

#include "job/types.h"

namespace berth::job {

/// Unix time of a --begin/--deadline text in the controller's time zone; nullopt: not readable.
std::optional<Time> parse_when(std::string_view text, Time now);

}  // namespace berth::job
