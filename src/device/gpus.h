// NVIDIA GPUs of this machine, found without any library of theirs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/cpus.h"
#include "device/machine.h"

namespace berth::device {

/// GPUs with a device file, in the order of their minor numbers. Names, buses and sockets come from
/// the driver's files where it is loaded.
std::vector<Gpu> find_gpus(const Places& places, const CpuMap& cpus,
                           std::vector<std::string>& notes);

/// One word for a model: "NVIDIA A100-SXM4-80GB" → "a100", "Tesla V100-PCIE-16GB" → "v100",
/// "NVIDIA GeForce RTX 3090" → "rtx_3090".
std::string type_of_model(std::string_view model);

}  // namespace berth::device
