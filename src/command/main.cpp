// The berth program: picks the command.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command/explain_command.h"
#include "request/request.h"

namespace {

constexpr std::string_view kVersion = "berth 0.1.0 (speaks slurm 26.11.0)\n";

constexpr std::string_view kHelp =
    R"(berth: who gets which GPU, and why.

  berth explain SCRIPT      what a batch script will get, rank by rank, and what is wrong with it
  berth explain --help      its options
  berth --version
)";

berth::request::Environment environment_of(char** entries) {
  berth::request::Environment environment;
  for (char** entry = entries; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t eq = text.find('=');
    if (eq == std::string_view::npos || eq == 0) continue;
    environment.emplace(text.substr(0, eq), text.substr(eq + 1));
  }
  return environment;
}

int print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const std::string_view name = words.empty() ? std::string_view() : words.front();
  if (name == "explain") {
    return berth::command::run_explain(std::span(words).subspan(1), environment_of(environ));
  }
  if (name == "--version" || name == "-V") return print(kVersion);
  if (name == "help" || name == "--help" || name == "-h") return print(kHelp);
  if (name.empty()) {
    fmt::print(stderr, "{}", kHelp);
    return 1;
  }
  fmt::print(stderr, "berth: unknown command {}; `berth help` lists them\n", name);
  return 1;
}
