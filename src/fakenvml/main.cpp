// libberth-fake-nvml.so: stands in for libnvidia-ml.so.1 on machines without GPUs. All of it is in
// the module's library; this file only names one function, so that the linker has a beginning.
#include "fakenvml/exports.h"

namespace berth::fakenvml {

extern "C" __attribute__((visibility("default"))) int berth_fake_nvml() {
  return nvml::nvmlInit_v2();
}

}  // namespace berth::fakenvml
