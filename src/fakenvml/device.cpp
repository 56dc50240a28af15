#include "fakenvml/device.h"

#include <cstdint>
#include <string>

namespace berth::fakenvml {
namespace {

// A handle is a number: GPU + 1, and above it MIG instance + 1.
constexpr std::uintptr_t kInstances = 256;

}  // namespace

nvml::Device handle_of(std::size_t gpu) {
  return reinterpret_cast<nvml::Device>((gpu + 1) * kInstances);
}

nvml::Device handle_of(std::size_t gpu, std::size_t instance) {
  return reinterpret_cast<nvml::Device>((gpu + 1) * kInstances + instance + 1);
}

nvml::Return check(std::string_view function) {
  const State* state = current();
  if (state == nullptr) return nvml::kUninitialized;
  const bool missing = state->missing_functions.contains(std::string(function));
  return missing ? nvml::kFunctionNotFound : nvml::kSuccess;
}

nvml::Return look_up(std::string_view function, nvml::Device device, Target& out) {
  if (const nvml::Return answer = check(function); answer != nvml::kSuccess) return answer;
  const auto number = reinterpret_cast<std::uintptr_t>(device);
  out.state = current();
  out.index = number / kInstances - 1;
  if (number < kInstances || out.index >= out.state->gpus.size()) return nvml::kInvalidArgument;
  out.gpu = &out.state->gpus[out.index];
  if (out.gpu->missing) return nvml::kGpuIsLost;
  const std::uintptr_t instance = number % kInstances;
  if (instance == 0) return nvml::kSuccess;
  if (instance > out.gpu->instances.size()) return nvml::kInvalidArgument;
  out.instance = &out.gpu->instances[instance - 1];
  return nvml::kSuccess;
}

}  // namespace berth::fakenvml
