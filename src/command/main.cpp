// The berth program: one file for all commands, picked by the name it is called by (`sbatch`, a
// link) or by the first word (`berth sbatch`).
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command/commands.h"
#include "command/version.h"
#include "request/request.h"

namespace {

using berth::command::CommandRow;

berth::request::Environment environment_of(char** entries) {
  berth::request::Environment environment;
  for (char** entry = entries; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t eq = text.find('=');
    if (eq == std::string_view::npos || eq == 0) continue;
    environment.emplace(text.substr(0, eq), text.substr(eq + 1));
  }
  // berth tells tasks so for programs that ask; to a command in a task it is not an option.
  const auto told = environment.find("BERTH_RENDEZVOUS");
  const auto each = environment.find("SLURM_NTASKS_PER_NODE");
  if (told != environment.end() && each != environment.end() &&
      ("," + told->second + ",").find(",SLURM_NTASKS_PER_NODE=" + each->second + ",") !=
          std::string::npos) {
    environment.erase(each);
  }
  return environment;
}

std::string help() {
  std::string text = "berth: who gets which GPU, and why.\n\n";
  for (const CommandRow& row : berth::command::command_rows()) {
    if (!row.help.empty()) text += fmt::format("  berth {:<10} {}\n", row.name, row.help);
  }
  return text + "\n  berth COMMAND --help   its options\n  berth --version\n";
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (words.empty()) words.emplace_back("berth");
  std::span<const std::string> rest(words);
  const CommandRow* row = berth::command::find_command(base_name(rest.front()));
  rest = rest.subspan(1);
  if (row == nullptr) {
    const std::string_view name = rest.empty() ? std::string_view() : rest.front();
    if (name == "--version" || name == "-V") {
      fmt::print("{}\n", berth::command::kBerthVersion);
      return 0;
    }
    if (name == "help" || name == "--help" || name == "-h") {
      fmt::print("{}", help());
      return 0;
    }
    if (name.empty()) {
      fmt::print(stderr, "{}", help());
      return 1;
    }
    row = berth::command::find_command(name);
    if (row == nullptr) {
      fmt::print(stderr, "berth: unknown command {}; `berth help` lists them\n", name);
      return 1;
    }
    rest = rest.subspan(1);
  }
  return row->run(rest, environment_of(environ));
}
