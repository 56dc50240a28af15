// The functions that the fake library exports, under the names and with the parameters of NVML.
#pragma once

#include "nvml/abi.h"

namespace berth::nvml {
extern "C" {
#define BERTH_NVML(name, parameters) __attribute__((visibility("default"))) Return name parameters;
BERTH_NVML_FUNCTIONS(BERTH_NVML)
#undef BERTH_NVML
}
}  // namespace berth::nvml
