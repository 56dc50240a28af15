// Which GPUs there are, what they are, and how they hang together.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "fakenvml/device.h"
#include "fakenvml/exports.h"

namespace berth::nvml {

using fakenvml::Target;

namespace {

Return copy(const std::string& from, char* text, unsigned int size) {
  if (from.empty()) return kNotSupported;
  if (from.size() + 1 > size) return kInsufficientSize;
  std::memcpy(text, from.c_str(), from.size() + 1);
  return kSuccess;
}

/// Newer structures have the long form as well.
void fill(Pci& pci, const std::string& bus, bool with_long) {
  unsigned int function = 0;
  std::sscanf(bus.c_str(), "%x:%x:%x.%x", &pci.domain, &pci.bus, &pci.device, &function);
  std::snprintf(pci.short_bus, sizeof pci.short_bus, "%04X:%02X:%02X.%X", pci.domain & 0xffff,
                pci.bus & 0xff, pci.device & 0xff, function & 0xf);
  if (!with_long) return;
  std::snprintf(pci.long_bus, sizeof pci.long_bus, "%08X:%02X:%02X.%X", pci.domain, pci.bus & 0xff,
                pci.device & 0xff, function & 0xf);
}

Return pci_of(const char* function, Device device, Pci* pci, bool with_long) {
  Target at;
  if (const Return answer = look_up(function, device, at); answer != kSuccess) return answer;
  if (at.gpu->bus.empty()) return kNotSupported;
  fill(*pci, at.gpu->bus, with_long);
  return kSuccess;
}

Return start() {
  return fakenvml::current() == nullptr ? kDriverNotLoaded : kSuccess;
}

Return count_of(const char* function, unsigned int* count) {
  if (const Return answer = fakenvml::check(function); answer != kSuccess) return answer;
  *count = static_cast<unsigned int>(fakenvml::current()->gpus.size());
  return kSuccess;
}

Return by_index(const char* function, unsigned int index, Device* device) {
  if (const Return answer = fakenvml::check(function); answer != kSuccess) return answer;
  const fakenvml::State& state = *fakenvml::current();
  if (index >= state.gpus.size()) return kInvalidArgument;
  if (state.gpus[index].missing) return kGpuIsLost;
  *device = fakenvml::handle_of(index);
  return kSuccess;
}

/// The end of a link: a GPU's number, -1 for a switch.
Return link_end(const char* function, Device device, unsigned int link, Target& at, int& end) {
  if (const Return answer = look_up(function, device, at); answer != kSuccess) return answer;
  if (at.instance != nullptr || at.gpu->links.empty()) return kNotSupported;
  if (link >= at.gpu->links.size()) return kInvalidArgument;
  end = at.gpu->links[link];
  return kSuccess;
}

Return remote_pci(const char* function, Device device, unsigned int link, Pci* pci) {
  Target at;
  int end = 0;
  const Return answer = link_end(function, device, link, at, end);
  if (answer != kSuccess) return answer;
  const bool gpu = end >= 0 && static_cast<std::size_t>(end) < at.state->gpus.size();
  fill(*pci, gpu ? at.state->gpus[static_cast<std::size_t>(end)].bus : "00000000:05:00.0", true);
  return kSuccess;
}

Return bits_into(const std::vector<unsigned long>& from, unsigned int words, unsigned long* set) {
  if (from.empty()) return kNotSupported;
  for (unsigned int i = 0; i < words; ++i) set[i] = i < from.size() ? from[i] : 0;
  return kSuccess;
}

}  // namespace

extern "C" {

Return nvmlInit() {
  return start();
}
Return nvmlInit_v2() {
  const Return answer = fakenvml::check("nvmlInit_v2");
  return answer == kFunctionNotFound ? answer : start();
}
Return nvmlShutdown() {
  return kSuccess;
}
Return nvmlSystemGetDriverVersion(char* text, unsigned int size) {
  const Return answer = fakenvml::check("nvmlSystemGetDriverVersion");
  return answer == kSuccess ? copy(fakenvml::current()->driver, text, size) : answer;
}
Return nvmlDeviceGetCount(unsigned int* count) {
  return count_of("nvmlDeviceGetCount", count);
}
Return nvmlDeviceGetCount_v2(unsigned int* count) {
  return count_of("nvmlDeviceGetCount_v2", count);
}
Return nvmlDeviceGetHandleByIndex(unsigned int index, Device* device) {
  return by_index("nvmlDeviceGetHandleByIndex", index, device);
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device* device) {
  return by_index("nvmlDeviceGetHandleByIndex_v2", index, device);
}
Return nvmlDeviceGetUUID(Device device, char* text, unsigned int size) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetUUID", device, at);
  if (answer != kSuccess) return answer;
  return copy(at.instance == nullptr ? at.gpu->uuid : at.instance->uuid, text, size);
}
Return nvmlDeviceGetName(Device device, char* text, unsigned int size) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetName", device, at);
  if (answer != kSuccess) return answer;
  if (at.instance == nullptr) return copy(at.gpu->model, text, size);
  return copy(at.gpu->model + " MIG " + at.instance->profile, text, size);
}
Return nvmlDeviceGetMinorNumber(Device device, unsigned int* minor) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetMinorNumber", device, at);
  if (answer != kSuccess) return answer;
  if (at.instance != nullptr) return kNotSupported;
  *minor = at.gpu->minor;
  return kSuccess;
}
Return nvmlDeviceGetPciInfo(Device device, Pci* pci) {
  return pci_of("nvmlDeviceGetPciInfo", device, pci, false);
}
Return nvmlDeviceGetPciInfo_v2(Device device, Pci* pci) {
  return pci_of("nvmlDeviceGetPciInfo_v2", device, pci, false);
}
Return nvmlDeviceGetPciInfo_v3(Device device, Pci* pci) {
  return pci_of("nvmlDeviceGetPciInfo_v3", device, pci, true);
}
Return nvmlDeviceGetCpuAffinity(Device device, unsigned int words, unsigned long* set) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetCpuAffinity", device, at);
  return answer == kSuccess ? bits_into(at.gpu->cpus, words, set) : answer;
}
Return nvmlDeviceGetMemoryAffinity(Device device, unsigned int words, unsigned long* set, int) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetMemoryAffinity", device, at);
  if (answer != kSuccess) return answer;
  if (!at.gpu->numa || *at.gpu->numa >= 64) return kNotSupported;
  return bits_into({1UL << *at.gpu->numa}, words, set);
}
Return nvmlDeviceGetTopologyCommonAncestor(Device one, Device other, int* level) {
  Target from;
  Target to;
  const char* function = "nvmlDeviceGetTopologyCommonAncestor";
  if (const Return answer = look_up(function, one, from); answer != kSuccess) return answer;
  if (const Return answer = look_up(function, other, to); answer != kSuccess) return answer;
  if (to.index >= from.gpu->ways.size() || from.gpu->ways[to.index] < 0) return kNotSupported;
  *level = from.gpu->ways[to.index];
  return kSuccess;
}
Return nvmlDeviceGetNvLinkState(Device device, unsigned int link, int* active) {
  Target at;
  int end = 0;
  const Return answer = link_end("nvmlDeviceGetNvLinkState", device, link, at, end);
  if (answer == kSuccess) *active = 1;
  return answer;
}
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned int link, int* kind) {
  Target at;
  int end = 0;
  const Return answer = link_end("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, at, end);
  if (answer == kSuccess) *kind = end < 0 ? kLinkToSwitch : kLinkToGpu;
  return answer;
}
Return nvmlDeviceGetNvLinkRemotePciInfo(Device device, unsigned int link, Pci* pci) {
  return remote_pci("nvmlDeviceGetNvLinkRemotePciInfo", device, link, pci);
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned int link, Pci* pci) {
  return remote_pci("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, pci);
}
Return nvmlDeviceGetMigMode(Device device, unsigned int* now, unsigned int* later) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetMigMode", device, at);
  if (answer == kSuccess) *now = *later = at.gpu->mig ? 1 : 0;
  return answer;
}
Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned int* count) {
  constexpr unsigned int kMost = 7;
  Target at;
  const Return answer = look_up("nvmlDeviceGetMaxMigDeviceCount", device, at);
  if (answer == kSuccess) {
    *count = std::max(kMost, static_cast<unsigned int>(at.gpu->instances.size()));
  }
  return answer;
}
Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned int index, Device* instance) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetMigDeviceHandleByIndex", device, at);
  if (answer != kSuccess) return answer;
  if (index >= at.gpu->instances.size()) return kNotFound;
  *instance = fakenvml::handle_of(at.index, index);
  return kSuccess;
}
Return nvmlDeviceGetGpuInstanceId(Device instance, unsigned int* id) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetGpuInstanceId", instance, at);
  if (answer != kSuccess) return answer;
  if (at.instance == nullptr) return kInvalidArgument;
  *id = at.instance->gpu_instance;
  return kSuccess;
}
Return nvmlDeviceGetComputeInstanceId(Device instance, unsigned int* id) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetComputeInstanceId", instance, at);
  if (answer != kSuccess) return answer;
  if (at.instance == nullptr) return kInvalidArgument;
  *id = at.instance->compute_instance;
  return kSuccess;
}
Return nvmlDeviceGetAttributes_v2(Device device, Attributes* attributes) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetAttributes_v2", device, at);
  if (answer != kSuccess) return answer;
  if (at.instance == nullptr) return kNotSupported;
  *attributes = {};
  attributes->gpu_slices = attributes->compute_slices = at.instance->slices;
  attributes->memory_mb = at.instance->memory_mb;
  return kSuccess;
}

}  // extern "C"
}  // namespace berth::nvml
