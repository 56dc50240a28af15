#include "conf/gpu_parameters.h"

#include <fmt/format.h>

#include "text/number.h"

namespace berth::conf {

Result<GpuParameters> gpu_parameters(const Parameters& node) {
  constexpr std::uint64_t kLongest = 86400;
  constexpr std::uint64_t kShortestPoll = 20;
  GpuParameters out;
  if (const auto given = node.find("gpu_probation"); given != node.end()) {
    const auto seconds = text::parse_number(given->second, kLongest);
    if (!seconds) {
      return fail(Code::bad_value, fmt::format("gpu_probation={}: allowed is "
                                               "gpu_probation=SECONDS, 0 to {}",
                                               given->second, kLongest));
    }
    out.probation = std::chrono::seconds(*seconds);
  }
  if (const auto given = node.find("gpu_poll"); given != node.end()) {
    std::string_view digits = given->second;
    const bool unit = digits.ends_with("ms");
    if (unit) digits.remove_suffix(2);
    const auto poll = text::parse_number(digits, 1000);
    if (!unit || !poll || *poll < kShortestPoll) {
      return fail(Code::bad_value,
                  fmt::format("gpu_poll={}: allowed is gpu_poll=TIME, {}ms to 1000ms",
                              given->second, kShortestPoll));
    }
    out.poll = std::chrono::milliseconds(*poll);
  }
  if (const auto given = node.find("gpu_mem"); given != node.end()) {
    if (given->second != "watch" && given->second != "kill") {
      return fail(Code::bad_value, fmt::format("gpu_mem={}: allowed are gpu_mem=watch and "
                                               "gpu_mem=kill",
                                               given->second));
    }
    out.ends_over_users = given->second == "kill";
  }
  if (const auto given = node.find("gpu_fence"); given != node.end()) {
    if (given->second != "task" && given->second != "step") {
      return fail(Code::bad_value, fmt::format("gpu_fence={}: allowed are gpu_fence=task and "
                                               "gpu_fence=step",
                                               given->second));
    }
    out.step_fence = given->second == "step";
  }
  return out;
}

}  // namespace berth::conf
