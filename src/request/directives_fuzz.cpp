// Any bytes as a batch script.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "request/directives.h"
#include "request/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::request;
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> words = {"job.sh"};
  (void)parse(Command::sbatch, words, script, {});
  (void)files_wanted(Command::sbatch, words, script, {});
  std::vector<berth::Message> warnings;
  int before = 0;
  if (const auto directives = find_directives(script, "job.sh", warnings)) {
    for (const Directive& directive : *directives) {
      if (directive.line <= before) __builtin_trap();
      before = directive.line;
    }
  }
  if (warnings.size() > kMaxWarnings) __builtin_trap();
  return 0;
}
