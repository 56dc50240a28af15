// Any bytes as a batch script, through parsing, placement and all rules: nothing may crash or hang.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lint/explained_test_fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  const auto findings = berth::lint::test::Explained().sbatch(script);
  for (const auto& finding : findings) {
    if (finding.text.empty() || finding.code.size() != 4) __builtin_trap();
  }
  return 0;
}
