#include "nvml/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

namespace berth::nvml {

std::string words_of(Return answer) {
  switch (answer) {
    case kUninitialized:
      return "not initialised";
    case kInvalidArgument:
      return "invalid argument";
    case kNotSupported:
      return "not supported";
    case kNotFound:
      return "not found";
    case kDriverNotLoaded:
      return "the driver is not loaded";
    case kFunctionNotFound:
      return "function not found";
    case kGpuIsLost:
      return "GPU is lost";
    case kResetRequired:
      return "GPU requires a reset";
    default:
      return fmt::format("NVML error {}", answer);
  }
}

Result<Library> Library::open(const std::string& path) {
  Library library;
  library.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle_ == nullptr) {
    const char* why = ::dlerror();
    return fail(Code::io, fmt::format("cannot load {}: {}", path, why == nullptr ? "?" : why));
  }
#define BERTH_NVML(name, parameters) \
  library.functions_.name =          \
      reinterpret_cast<decltype(library.functions_.name)>(::dlsym(library.handle_, #name));
  BERTH_NVML_FUNCTIONS(BERTH_NVML)
#undef BERTH_NVML
  Return answer = call(library.functions_.nvmlInit_v2);
  if (ask_older(answer)) answer = call(library.functions_.nvmlInit);
  if (answer != kSuccess) {
    library.functions_.nvmlShutdown = nullptr;
    return fail(Code::io, fmt::format("{}: {}", path, words_of(answer)));
  }
  return library;
}

Library::Library(Library&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), functions_(other.functions_) {}

Library::~Library() {
  if (handle_ == nullptr) return;
  call(functions_.nvmlShutdown);
  ::dlclose(handle_);
}

}  // namespace berth::nvml
