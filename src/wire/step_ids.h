// Numbers with a meaning of their own, as they appear on the wire and in the store.
#pragma once

#include <cstdint>

namespace berth::wire {

// Steps that are not counted from 0.
inline constexpr std::uint32_t kBatchStep = 0xfffffffb;        // "batch", SLURM_STEP_ID=-5
inline constexpr std::uint32_t kExternStep = 0xfffffffc;       // "extern", -4
inline constexpr std::uint32_t kInteractiveStep = 0xfffffffa;  // "interactive", -6

/// How a task ended that the kernel killed for want of memory: in the form of wait(2), a signal
/// that there is not.
inline constexpr int kOutOfMemoryStatus = 125;
/// The cause of the end of a step that had more of a GPU's memory than its job was given.
inline constexpr std::string_view kGpuMemoryCause = "GPU MEMORY";

}  // namespace berth::wire
