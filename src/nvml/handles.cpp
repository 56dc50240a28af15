// The GPUs that the driver counts.
#include <fmt/format.h>

#include <algorithm>

#include "nvml/gpus.h"

namespace berth::nvml {

Result<std::vector<Handle>> handles(const Functions& nvml) {
  unsigned int count = 0;
  Return answer = call(nvml.nvmlDeviceGetCount_v2, &count);
  if (ask_older(answer)) answer = call(nvml.nvmlDeviceGetCount, &count);
  if (answer != kSuccess) {
    return fail(Code::io, fmt::format("the number of GPUs is not told: {}", words_of(answer)));
  }
  std::vector<Handle> out;
  count = std::min<unsigned int>(count, survey::kMostGpus);
  for (unsigned int index = 0; index < count; ++index) {
    Handle handle;
    handle.index = index;
    answer = call(nvml.nvmlDeviceGetHandleByIndex_v2, index, &handle.device);
    if (ask_older(answer)) answer = call(nvml.nvmlDeviceGetHandleByIndex, index, &handle.device);
    if (answer != kSuccess) {
      handle.device = nullptr;
      handle.why = words_of(answer);
    }
    out.push_back(std::move(handle));
  }
  return out;
}

}  // namespace berth::nvml
