// berth backup FILE, berth restore FILE: berthctld does the work, with the rights of who calls it.
// Who may not read the state directory of the controller can do neither.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/process.h"
#include "command/commands.h"
#include "command/messages.h"
#include "command/up_processes.h"

namespace berth::command {
namespace {

constexpr std::string_view kBackupUsage = R"(usage: berth backup FILE [-f slurm.conf] [--state DIR]

Copies all that the controller has stored, and the keys of the cluster, into FILE: as it is at one
moment, while the controller works. On the controller's host, as its administrator.
)";

constexpr std::string_view kRestoreUsage =
    R"(usage: berth restore FILE [-f slurm.conf] [--state DIR]

Puts a backup in the place of what the controller has stored, which is kept aside. The controller is
stopped first, and started afterwards. No job id is handed out again; jobs that waited are held, since
they may have run. On the controller's host, as its administrator.
)";

int run_controller_with(std::string_view option, std::string_view command, std::string_view usage,
                        std::span<const std::string> words) {
  const bool help = !words.empty() && (words.front() == "-h" || words.front() == "--help");
  if (help || words.empty() || words.front().starts_with('-')) {
    fmt::print(help ? stdout : stderr, "{}", usage);
    return help ? 0 : 1;
  }
  auto program = program_beside("berthctld");
  if (!program) return print_error(program.error(), command);
  std::vector<std::string> arguments = {*program, std::string(option), words.front()};
  arguments.insert(arguments.end(), words.begin() + 1, words.end());
  const std::vector<char*> argv = pointers_to(arguments);
  ::execv(program->c_str(), argv.data());
  return print_error(
      fail(Code::io, fmt::format("cannot run {}: {}", *program, std::strerror(errno))).error(),
      command);
}

}  // namespace

int run_backup(std::span<const std::string> words, const request::Environment& /*environment*/) {
  return run_controller_with("--backup", "berth backup", kBackupUsage, words);
}

int run_restore(std::span<const std::string> words, const request::Environment& /*environment*/) {
  return run_controller_with("--restore", "berth restore", kRestoreUsage, words);
}

}  // namespace berth::command
