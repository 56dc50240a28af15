// How a GPU fares, and who uses it.
#include <algorithm>

#include "nvml/gpus.h"

namespace berth::nvml {
namespace {

constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;

bool gone(Return answer) {
  return answer == kGpuIsLost || answer == kResetRequired;
}

/// Bytes in use, without what the driver keeps for itself where that is told apart.
Return memory_used(const Functions& nvml, Device device, unsigned long long& bytes) {
  Memory2 newer{};
  newer.version = kMemory2;
  Return answer = call(nvml.nvmlDeviceGetMemoryInfo_v2, device, &newer);
  bytes = newer.used;
  if (answer == kSuccess || gone(answer)) return answer;
  Memory older{};
  answer = call(nvml.nvmlDeviceGetMemoryInfo, device, &older);
  bytes = older.used;
  return answer;
}

void add_rows(const Functions& nvml, Device device, survey::Sample& out) {
  unsigned int corrected = 0;
  unsigned int uncorrected = 0;
  unsigned int pending = 0;
  unsigned int failed = 0;
  if (call(nvml.nvmlDeviceGetRemappedRows, device, &corrected, &uncorrected, &pending, &failed) !=
      kSuccess) {
    return;
  }
  out.rows_remapped = corrected + uncorrected;
  out.rows_pending = pending;
  out.rows_failed = failed;
}

/// The list of one kind; the count may grow between two calls.
template <class Info>
Return list(Return (*function)(Device, unsigned int*, Info*), Device device,
            std::vector<Info>& out) {
  constexpr int kTries = 4;
  constexpr std::size_t kRoom = 16;
  out.resize(kRoom);
  Return answer = kInsufficientSize;
  for (int i = 0; i < kTries && answer == kInsufficientSize; ++i) {
    auto count = static_cast<unsigned int>(out.size());
    answer = call(function, device, &count, out.data());
    const std::size_t more = answer == kInsufficientSize ? count + kRoom : count;
    out.resize(std::min(more, survey::kMostProcesses));
  }
  if (answer != kSuccess) out.clear();
  return answer;
}

survey::Process process_of(std::uint32_t gpu, const ProcessInfo& info) {
  survey::Process out;
  out.gpu = gpu;
  out.pid = info.pid;
  if (info.memory != kNoMemoryKnown) out.memory_mb = info.memory / kMegabyte;
  if (info.gpu_instance != kNoInstance) out.gpu_instance = info.gpu_instance;
  return out;
}

}  // namespace

survey::Line sample(const Functions& nvml, const Handle& gpu) {
  if (gpu.device == nullptr) return survey::Lost{gpu.index, gpu.why};
  survey::Sample out;
  out.gpu = gpu.index;
  unsigned long long bytes = 0;
  const Return answer = memory_used(nvml, gpu.device, bytes);
  if (gone(answer)) return survey::Lost{gpu.index, words_of(answer)};
  if (answer == kSuccess) out.memory_used_mb = bytes / kMegabyte;
  Utilization rates{};
  const Return busy = call(nvml.nvmlDeviceGetUtilizationRates, gpu.device, &rates);
  if (gone(busy)) return survey::Lost{gpu.index, words_of(busy)};
  if (busy == kSuccess) out.busy_percent = rates.gpu;
  unsigned int number = 0;
  if (call(nvml.nvmlDeviceGetPowerUsage, gpu.device, &number) == kSuccess) out.power_mw = number;
  if (call(nvml.nvmlDeviceGetTemperature, gpu.device, kSensorGpu, &number) == kSuccess) {
    out.celsius = number;
  }
  unsigned long long errors = 0;
  const auto ecc = [&](int kind) {
    return call(nvml.nvmlDeviceGetTotalEccErrors, gpu.device, kind, kEccVolatile, &errors);
  };
  if (ecc(kEccCorrected) == kSuccess) out.ecc_corrected = errors;
  if (ecc(kEccUncorrected) == kSuccess) out.ecc_uncorrected = errors;
  add_rows(nvml, gpu.device, out);
  return out;
}

std::vector<survey::Process> processes(const Functions& nvml, const Handle& gpu) {
  std::vector<survey::Process> out;
  if (gpu.device == nullptr) return out;
  std::vector<ProcessInfo> found;
  Return answer = list(nvml.nvmlDeviceGetComputeRunningProcesses_v3, gpu.device, found);
  if (ask_older(answer)) {
    answer = list(nvml.nvmlDeviceGetComputeRunningProcesses_v2, gpu.device, found);
  }
  if (ask_older(answer)) {
    std::vector<ProcessInfo1> older;
    list(nvml.nvmlDeviceGetComputeRunningProcesses, gpu.device, older);
    for (const ProcessInfo1& one : older) {
      found.push_back({one.pid, one.memory, kNoInstance, kNoInstance});
    }
  }
  for (const ProcessInfo& one : found) out.push_back(process_of(gpu.index, one));
  std::vector<ProcessInfo> drawing;
  list(nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, gpu.device, drawing);
  for (const ProcessInfo& one : drawing) {
    const bool known = std::ranges::find(found, one.pid, &ProcessInfo::pid) != found.end();
    if (!known) out.push_back(process_of(gpu.index, one));
  }
  return out;
}

}  // namespace berth::nvml
