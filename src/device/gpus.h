// GPUs of this machine by each way of looking for them. All but one need no library of the maker.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/cpus.h"
#include "device/machine.h"

namespace berth::device {

/// NVIDIA's by their management library: what berth-nvml told.
std::vector<Gpu> gpus_of_survey(const survey::Survey& found, const Places& places,
                                const CpuMap& cpus, std::vector<std::string>& notes);
/// The order of AMD's own runtime: by node of its kernel driver's topology.
std::vector<Gpu> find_amd_gpus(const Places& places, const CpuMap& cpus,
                               std::vector<std::string>& notes);
/// Intel's cards, in the order of their buses; not what is built into a processor.
std::vector<Gpu> find_intel_gpus(const Places& places, const CpuMap& cpus,
                                 std::vector<std::string>& notes);

/// NVIDIA's with a device file, in the order of their minor numbers. Names, buses and sockets come
/// from the driver's files where it is loaded.
std::vector<Gpu> find_gpus(const Places& places, const CpuMap& cpus,
                           std::vector<std::string>& notes);

/// Sockets near a PCI device, as the kernel says.
Bits sockets_near(const Places& places, const std::string& bus, const CpuMap& cpus);
/// Slurm wants a type for all GPUs of a node or for none.
void take_types_together(std::vector<Gpu>& gpus, std::vector<std::string>& notes);

/// One word for a model: "NVIDIA A100-SXM4-80GB" → "a100", "Tesla V100-PCIE-16GB" → "v100",
/// "NVIDIA GeForce RTX 3090" → "rtx_3090", "AMD Instinct MI300X OAM" → "mi300x".
std::string type_of_model(std::string_view model);

}  // namespace berth::device
