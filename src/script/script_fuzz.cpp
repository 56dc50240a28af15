// Any text as a script, with a few variables: must end, within the limits.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "script/script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto script = berth::script::read_script(
      text, {{"SLURM_JOB_NODELIST", "n[1-3]"}, {"A", "1"}, {"B", "x y"}}, {"first", "second one"});
  if (script.commands.size() > berth::script::kMaxCommands) std::abort();
  for (const auto& event : script.events) {
    if (event.kind != berth::script::Event::Kind::run) continue;
    if (event.command >= script.commands.size()) std::abort();
    const auto& command = script.commands[event.command];
    if (command.arguments_at > command.words.size()) std::abort();
  }
  return 0;
}
