// What a handle stands for, and the few answers that every function gives.
#pragma once

#include <string_view>

#include "fakenvml/state.h"
#include "nvml/abi.h"

namespace berth::fakenvml {

struct Target {
  const State* state = nullptr;
  std::size_t index = 0;
  const Gpu* gpu = nullptr;
  const Instance* instance = nullptr;  // a part of the GPU
};

nvml::Device handle_of(std::size_t gpu);
nvml::Device handle_of(std::size_t gpu, std::size_t instance);

/// Whether the library works at all, and has this function.
nvml::Return check(std::string_view function);
/// The same, and the GPU is there.
nvml::Return look_up(std::string_view function, nvml::Device device, Target& out);

}  // namespace berth::fakenvml
