// The texts of /proc: a process may call itself anything.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "step/process_use.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::step;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ProcessUse use = parse_stat(text, KernelUnits{}).value_or(ProcessUse{});
  parse_status(text, use);
  if (use.memory_most < use.memory) std::abort();
  (void)parse_io(text);
  (void)parse_cpuinfo(text);
  return 0;
}
