// One way of looking for GPUs after the other.
#pragma once

#include "device/cpus.h"
#include "device/machine.h"

namespace berth::device {

/// The GPUs of this machine, into it. A machine without any is told apart in microseconds: no
/// program is started unless NVIDIA's driver is loaded, or BERTH_NVML_LIBRARY names a library.
void detect_gpus(const Search& search, const CpuMap& cpus, Machine& machine);

}  // namespace berth::device
