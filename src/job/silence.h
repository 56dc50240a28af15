// How soon a silent node is noticed: how often agents speak, and how long nothing may come.
#pragma once

#include <algorithm>
#include <cstdint>

namespace berth::job {

/// An agent sends a beat every so many seconds, and the controller answers it.
inline std::uint32_t beat_seconds(std::uint32_t slurmd_timeout) {
  constexpr std::uint32_t kMost = 10;
  return slurmd_timeout == 0 ? kMost : std::clamp(slurmd_timeout / 3, 1U, kMost);
}

/// After so many seconds without a word the node is NOT_RESPONDING: no job is started there. The
/// agent for its part takes the controller for lost, and dials again.
inline std::uint32_t silent_seconds(std::uint32_t slurmd_timeout) {
  return 2 * beat_seconds(slurmd_timeout);
}

}  // namespace berth::job
