// libnvidia-ml.so.1, loaded at run time: every function may be missing, because drivers differ.
#pragma once

#include <string>

#include "base/result.h"
#include "nvml/abi.h"

namespace berth::nvml {

/// What a function that the library does not have answers, so that callers know one kind of "no".
template <class... Arguments>
Return call(Return (*function)(Arguments...), std::type_identity_t<Arguments>... arguments) {
  return function == nullptr ? kFunctionNotFound : function(arguments...);
}
/// Whether an older function may know what this one does not.
inline bool ask_older(Return answer) {
  return answer == kFunctionNotFound;
}

/// The functions of the library; null where it does not have them.
struct Functions {
#define BERTH_NVML(name, parameters) Return(*name) parameters = nullptr;
  BERTH_NVML_FUNCTIONS(BERTH_NVML)
#undef BERTH_NVML
};

/// "GPU is lost", or the number of an answer that has no words here.
std::string words_of(Return answer);

/// Loaded and initialised until it goes.
class Library {
 public:
  /// `path` as dlopen takes it.
  static Result<Library> open(const std::string& path);
  Library(Library&& other) noexcept;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  Library& operator=(Library&&) = delete;
  ~Library();

  [[nodiscard]] const Functions& functions() const { return functions_; }

 private:
  Library() = default;
  void* handle_ = nullptr;
  Functions functions_;
};

}  // namespace berth::nvml
