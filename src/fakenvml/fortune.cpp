// How the GPUs fare: memory, use, power, errors, processes.
#include "fakenvml/device.h"
#include "fakenvml/exports.h"

namespace berth::nvml {

using fakenvml::Target;

namespace {

constexpr unsigned long long kMegabyte = 1ULL << 20;

std::uint64_t total_of(const Target& at) {
  return at.instance == nullptr ? at.gpu->memory_mb : at.instance->memory_mb;
}

/// A value that the file may leave out.
template <class To, class From>
Return tell(const char* function, Device device, To* to,
            std::optional<From> fakenvml::Gpu::* value) {
  Target at;
  if (const Return answer = look_up(function, device, at); answer != kSuccess) return answer;
  const std::optional<From>& there = at.gpu->*value;
  if (!there) return kNotSupported;
  *to = *there;
  return kSuccess;
}

void put(ProcessInfo& out, const fakenvml::Process& process) {
  out.gpu_instance = process.gpu_instance.value_or(kNoInstance);
  out.compute_instance = process.gpu_instance ? 0 : kNoInstance;
}
void put(ProcessInfo1&, const fakenvml::Process&) {}

template <class Info>
Return list(const char* function, Device device, unsigned int* count, Info* out, bool drawing) {
  Target at;
  if (const Return answer = look_up(function, device, at); answer != kSuccess) return answer;
  unsigned int found = 0;
  for (const fakenvml::Process& process : at.gpu->processes) {
    if (process.draws != drawing) continue;
    if (found < *count && out != nullptr) {
      out[found].pid = process.pid;
      out[found].memory = process.memory_mb ? *process.memory_mb * kMegabyte : kNoMemoryKnown;
      put(out[found], process);
    }
    ++found;
  }
  const bool fits = found <= *count && (out != nullptr || found == 0);
  *count = found;
  return fits ? kSuccess : kInsufficientSize;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetMemoryInfo", device, at);
  if (answer != kSuccess) return answer;
  const std::uint64_t used = at.gpu->memory_used_mb;
  *memory = {total_of(at) * kMegabyte, (total_of(at) - used) * kMegabyte, used * kMegabyte};
  return kSuccess;
}
Return nvmlDeviceGetMemoryInfo_v2(Device device, Memory2* memory) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetMemoryInfo_v2", device, at);
  if (answer != kSuccess) return answer;
  if (memory->version != kMemory2) return kInvalidArgument;
  const std::uint64_t used = at.gpu->memory_used_mb;
  *memory = {kMemory2, total_of(at) * kMegabyte, 0, (total_of(at) - used) * kMegabyte,
             used * kMegabyte};
  return kSuccess;
}
Return nvmlDeviceGetUtilizationRates(Device device, Utilization* rates) {
  rates->memory = 0;
  return tell("nvmlDeviceGetUtilizationRates", device, &rates->gpu, &fakenvml::Gpu::busy_percent);
}
Return nvmlDeviceGetPowerUsage(Device device, unsigned int* milliwatts) {
  return tell("nvmlDeviceGetPowerUsage", device, milliwatts, &fakenvml::Gpu::power_mw);
}
Return nvmlDeviceGetTemperature(Device device, int, unsigned int* celsius) {
  return tell("nvmlDeviceGetTemperature", device, celsius, &fakenvml::Gpu::celsius);
}
Return nvmlDeviceGetTotalEccErrors(Device device, int kind, int, unsigned long long* count) {
  return tell(
      "nvmlDeviceGetTotalEccErrors", device, count,
      kind == kEccCorrected ? &fakenvml::Gpu::ecc_corrected : &fakenvml::Gpu::ecc_uncorrected);
}
Return nvmlDeviceGetRemappedRows(Device device, unsigned int* corrected, unsigned int* uncorrected,
                                 unsigned int* pending, unsigned int* failed) {
  Target at;
  const Return answer = look_up("nvmlDeviceGetRemappedRows", device, at);
  if (answer != kSuccess) return answer;
  if (!at.gpu->rows_remapped) return kNotSupported;
  *corrected = 0;
  *uncorrected = *at.gpu->rows_remapped;
  *pending = at.gpu->rows_pending ? 1 : 0;
  *failed = at.gpu->rows_failed ? 1 : 0;
  return kSuccess;
}
Return nvmlDeviceGetComputeRunningProcesses(Device device, unsigned int* count,
                                            ProcessInfo1* processes) {
  return list("nvmlDeviceGetComputeRunningProcesses", device, count, processes, false);
}
Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned int* count,
                                               ProcessInfo* processes) {
  return list("nvmlDeviceGetComputeRunningProcesses_v2", device, count, processes, false);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned int* count,
                                               ProcessInfo* processes) {
  return list("nvmlDeviceGetComputeRunningProcesses_v3", device, count, processes, false);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned int* count,
                                                ProcessInfo* processes) {
  return list("nvmlDeviceGetGraphicsRunningProcesses_v3", device, count, processes, true);
}

}  // extern "C"
}  // namespace berth::nvml
