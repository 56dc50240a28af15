// Who a process on a GPU is.
#pragma once

#include "node/gpu_health.h"

namespace berth::node {

GpuHealth::Holder look_at_holder(std::uint32_t pid);

}  // namespace berth::node
