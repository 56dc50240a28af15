// A request in words: "2 nodes × 4 GPUs = 8 GPUs, 2 tasks per node = 4 tasks, no binding: every
// task sees all 4, 10 min, partition ml".
#pragma once

#include <string>

#include "place/place.h"
#include "request/request.h"

namespace berth::explain {

std::string in_words(const request::Request& request, const place::JobPlan& plan);

/// "1 task", "4 tasks".
std::string counted(std::uint64_t n, std::string_view noun);
/// "10 min", "2 h", "1 day 2 h".
std::string time_in_words(std::uint32_t minutes);

}  // namespace berth::explain
