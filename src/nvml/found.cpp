// What stays as it is: models, memory, buses, near CPUs, links, MIG instances.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <map>
#include <span>

#include "nvml/gpus.h"

namespace berth::nvml {
namespace {

constexpr std::uint64_t kMega = std::uint64_t{1} << 20;

template <class Function>
std::string text_of(Function* function, Device device) {
  std::array<char, 128> text{};
  if (call(function, device, text.data(), static_cast<unsigned int>(text.size() - 1)) != kSuccess) {
    return {};
  }
  return text.data();
}

/// "00000000:1B:00.0" and "0000:1B:00.0" → "0000:1b:00.0", as the kernel names it.
std::string bus_of(const Pci& pci) {
  const std::string_view shorter(pci.short_bus, ::strnlen(pci.short_bus, sizeof pci.short_bus));
  std::string name(pci.long_bus, ::strnlen(pci.long_bus, sizeof pci.long_bus));
  if (name.find(':') == std::string::npos) name = shorter;
  // The domain has eight digits here, and with the kernel four unless it needs more.
  while (name.find(':') > 4 && name.starts_with('0')) name.erase(0, 1);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::string bus_of(const Functions& nvml, Device device) {
  Pci pci{};
  Return answer = call(nvml.nvmlDeviceGetPciInfo_v3, device, &pci);
  if (ask_older(answer)) answer = call(nvml.nvmlDeviceGetPciInfo_v2, device, &pci);
  if (ask_older(answer)) answer = call(nvml.nvmlDeviceGetPciInfo, device, &pci);
  return answer == kSuccess ? bus_of(pci) : std::string();
}

Bits bits_of(std::span<const unsigned long> words) {
  Bits out;
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (std::size_t b = 0; b < 64; ++b) {
      if ((words[w] >> b & 1UL) != 0) out.set(w * 64 + b);
    }
  }
  return out;
}

void add_near(const Functions& nvml, Device device, survey::FoundGpu& gpu) {
  std::array<unsigned long, 64> set{};  // 4096 CPUs
  const auto words = static_cast<unsigned int>(set.size());
  if (call(nvml.nvmlDeviceGetCpuAffinity, device, words, set.data()) == kSuccess) {
    gpu.cpus = bits_of(set);
  }
  set = {};
  constexpr int kNode = 0;
  if (call(nvml.nvmlDeviceGetMemoryAffinity, device, words, set.data(), kNode) == kSuccess) {
    const Bits nodes = bits_of(set);
    if (nodes.count() == 1) gpu.numa = static_cast<std::uint32_t>(nodes.last());
  }
}

Result<survey::FoundGpu> found_gpu(const Functions& nvml, const Handle& handle) {
  survey::FoundGpu gpu;
  gpu.index = handle.index;
  Memory memory{};
  const Return answer = call(nvml.nvmlDeviceGetMemoryInfo, handle.device, &memory);
  if (answer == kGpuIsLost || answer == kResetRequired) return fail(Code::io, words_of(answer));
  if (answer == kSuccess) gpu.memory_mb = memory.total / kMega;
  gpu.uuid = text_of(nvml.nvmlDeviceGetUUID, handle.device);
  gpu.model = text_of(nvml.nvmlDeviceGetName, handle.device);
  unsigned int minor = 0;
  if (call(nvml.nvmlDeviceGetMinorNumber, handle.device, &minor) == kSuccess) gpu.minor = minor;
  gpu.bus = bus_of(nvml, handle.device);
  add_near(nvml, handle.device, gpu);
  unsigned int now = 0;
  unsigned int later = 0;
  const Return mode = call(nvml.nvmlDeviceGetMigMode, handle.device, &now, &later);
  if (mode == kSuccess && now != 0) gpu.mig = 1;
  return gpu;
}

/// "… MIG 3g.40gb" says it; older drivers only how large the parts are.
std::string profile_of(const Functions& nvml, Device instance, const Attributes& attributes) {
  const std::string name = text_of(nvml.nvmlDeviceGetName, instance);
  constexpr std::string_view kMark = " MIG ";
  if (const std::size_t at = name.rfind(kMark); at != std::string::npos) {
    return name.substr(at + kMark.size());
  }
  if (attributes.gpu_slices == 0) return {};
  const unsigned long long gb = (attributes.memory_mb + 1023) / 1024;
  std::string profile = fmt::format("{}g.{}gb", attributes.gpu_slices, gb);
  if (attributes.compute_slices != attributes.gpu_slices) {
    profile = fmt::format("{}c.{}", attributes.compute_slices, profile);
  }
  return profile;
}

void add_instances(const Functions& nvml, const Handle& handle, survey::Survey& out) {
  unsigned int most = 0;
  if (call(nvml.nvmlDeviceGetMaxMigDeviceCount, handle.device, &most) != kSuccess) return;
  most = std::min<unsigned int>(most, survey::kMostInstances);
  for (unsigned int i = 0; i < most; ++i) {
    Device instance = nullptr;
    if (call(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle.device, i, &instance) != kSuccess) {
      continue;  // not every place is taken
    }
    survey::FoundInstance found;
    found.gpu = handle.index;
    found.uuid = text_of(nvml.nvmlDeviceGetUUID, instance);
    Attributes attributes{};
    call(nvml.nvmlDeviceGetAttributes_v2, instance, &attributes);
    found.memory_mb = attributes.memory_mb;
    Memory memory{};
    if (found.memory_mb == 0 && call(nvml.nvmlDeviceGetMemoryInfo, instance, &memory) == kSuccess) {
      found.memory_mb = memory.total / kMega;
    }
    found.profile = profile_of(nvml, instance, attributes);
    if (call(nvml.nvmlDeviceGetGpuInstanceId, instance, &found.gpu_instance) != kSuccess ||
        call(nvml.nvmlDeviceGetComputeInstanceId, instance, &found.compute_instance) != kSuccess) {
      continue;  // without its numbers nothing could be given to a job
    }
    out.instances.push_back(std::move(found));
  }
}

void add_links(const Functions& nvml, const Handle& handle,
               const std::map<std::string, std::uint32_t>& by_bus, survey::Survey& out) {
  std::map<std::uint32_t, std::uint32_t> to_gpu;
  std::uint32_t to_switch = 0;
  for (unsigned int link = 0; link < kMostLinks; ++link) {
    int active = 0;
    if (call(nvml.nvmlDeviceGetNvLinkState, handle.device, link, &active) != kSuccess) continue;
    if (active == 0) continue;
    Pci pci{};
    Return answer = call(nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2, handle.device, link, &pci);
    if (ask_older(answer)) {
      answer = call(nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle.device, link, &pci);
    }
    const auto other = answer == kSuccess ? by_bus.find(bus_of(pci)) : by_bus.end();
    if (other != by_bus.end()) {
      if (other->second != handle.index) ++to_gpu[other->second];
      continue;
    }
    int kind = -1;
    const Return told = call(nvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle.device, link, &kind);
    // A driver too old to say: an end that is none of the GPUs is a switch.
    if ((told == kSuccess && kind == kLinkToSwitch) || (ask_older(told) && answer == kSuccess)) {
      ++to_switch;
    }
  }
  for (const auto& [to, count] : to_gpu) out.links.push_back({handle.index, to, count});
  if (to_switch > 0) out.links.push_back({handle.index, std::nullopt, to_switch});
}

std::optional<survey::Way> way_of(int level) {
  switch (level) {
    case kTopologyInternal:
      return survey::Way::board;
    case kTopologySingleSwitch:
      return survey::Way::pcie_switch;
    case kTopologySwitches:
      return survey::Way::pcie_switches;
    case kTopologyHostBridge:
      return survey::Way::host_bridge;
    case kTopologyNode:
      return survey::Way::numa_node;
    case kTopologySystem:
      return survey::Way::system;
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<survey::Survey> take_survey(const Functions& nvml) {
  auto all = handles(nvml);
  if (!all) return pass(std::move(all.error()));
  survey::Survey out;
  std::array<char, 96> version{};
  const auto size = static_cast<unsigned int>(version.size() - 1);
  if (call(nvml.nvmlSystemGetDriverVersion, version.data(), size) == kSuccess) {
    out.driver = version.data();
  }
  std::vector<Handle> well;
  std::map<std::string, std::uint32_t> by_bus;
  for (const Handle& handle : *all) {
    auto gpu = handle.device == nullptr ? fail(Code::io, handle.why) : found_gpu(nvml, handle);
    if (!gpu) {
      out.lost.push_back({handle.index, std::string(gpu.error().what())});
      continue;
    }
    if (!gpu->bus.empty()) by_bus[gpu->bus] = handle.index;
    out.gpus.push_back(std::move(*gpu));
    well.push_back(handle);
  }
  for (const Handle& handle : well) {
    const auto gpu = std::ranges::find(out.gpus, handle.index, &survey::FoundGpu::index);
    if (gpu->mig) add_instances(nvml, handle, out);
    add_links(nvml, handle, by_bus, out);
  }
  for (std::size_t i = 0; i < well.size(); ++i) {
    for (std::size_t j = i + 1; j < well.size(); ++j) {
      int level = -1;
      const Return answer =
          call(nvml.nvmlDeviceGetTopologyCommonAncestor, well[i].device, well[j].device, &level);
      const auto way = answer == kSuccess ? way_of(level) : std::nullopt;
      if (way) out.ways.push_back({well[i].index, well[j].index, *way});
    }
  }
  return out;
}

}  // namespace berth::nvml
