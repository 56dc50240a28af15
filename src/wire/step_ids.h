// Numbers of the steps that are not counted from 0, as they appear on the wire and in the store.
#pragma once

#include <cstdint>

namespace berth::wire {

inline constexpr std::uint32_t kBatchStep = 0xfffffffb;        // "batch", SLURM_STEP_ID=-5
inline constexpr std::uint32_t kExternStep = 0xfffffffc;       // "extern", -4
inline constexpr std::uint32_t kInteractiveStep = 0xfffffffa;  // "interactive", -6

}  // namespace berth::wire
