// berth hardware: sockets, cores, GPUs and what joins them.
#include <fmt/format.h>

#include "command/commands.h"
#include "command/files.h"
#include "command/hardware_text.h"
#include "command/messages.h"

namespace berth::command {
namespace {

constexpr std::string_view kHardwareUsage =
    R"(usage: berth hardware [--json | --record] [--from FILE]

Shows what this machine has: sockets and cores, GPUs near each socket, and the links between GPUs.

  --from FILE   a topology file instead of this machine (as --record writes it)
  --json        for programs
  --record      as a topology file: what NVIDIA's library told, with the CPUs

`berthd -C` prints the line for slurm.conf, `berthd -G` what jobs would be given.
)";

struct HardwareOptions {
  std::string from;
  bool json = false;
  bool record = false;
  bool help = false;
};

Result<HardwareOptions> read_hardware_options(std::span<const std::string> words) {
  HardwareOptions out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-h" || word == "--help") {
      out.help = true;
    } else if (word == "--json") {
      out.json = true;
    } else if (word == "--record") {
      out.record = true;
    } else if (word.starts_with("--from=")) {
      out.from = word.substr(7);
    } else if (word == "--from" && i + 1 < words.size()) {
      out.from = words[++i];
    } else {
      return fail(Code::option_syntax, fmt::format("{} is not understood", word),
                  "try berth hardware --help");
    }
  }
  if (out.json && out.record) return fail(Code::conflict, "--json and --record exclude each other");
  return out;
}

Result<device::Machine> machine_of(const HardwareOptions& options) {
  if (options.from.empty()) return device::this_machine();
  auto text = read_file(options.from, survey::kMostBytes);
  if (!text) return pass(std::move(text.error()));
  const auto survey = survey::read_survey(*text);
  if (survey) return device::described(*survey);
  return fail(survey.error().code, fmt::format("{}: {}", options.from, survey.error().what()));
}

}  // namespace

int run_hardware(std::span<const std::string> words, const request::Environment&) {
  const auto options = read_hardware_options(words);
  if (!options) return print_error(options.error(), "berth hardware");
  if (options->help) {
    fmt::print("{}", kHardwareUsage);
    return 0;
  }
  const auto machine = machine_of(*options);
  if (!machine) return print_error(machine.error(), "berth hardware");
  if (!options->record) {
    fmt::print("{}", options->json ? hardware_json(*machine) : hardware_picture(*machine));
    return 0;
  }
  if (!machine->told) {
    const auto error =
        fail(Code::unsupported, "NVIDIA's library told nothing that could be recorded",
             "without --record this machine is shown as it was found");
    return print_error(error.error(), "berth hardware");
  }
  fmt::print("{}", survey::write_survey(device::recorded(*machine)));
  return 0;
}

}  // namespace berth::command
