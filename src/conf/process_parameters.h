// SlurmdParameters=max_step_pids=N (berth's own): how many processes and threads a step may have on
// a node.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "conf/daemon_keys.h"

namespace berth::conf {

inline constexpr std::uint64_t kFewestStepPids = 16;
inline constexpr std::uint64_t kMostStepPids = 4194304;  // more the kernel does not number

struct ProcessParameters {
  std::optional<std::uint64_t> max_step_pids{};  // unset = by the step's size; 0 = no limit
};

Result<ProcessParameters> process_parameters(const Parameters& node);

}  // namespace berth::conf
