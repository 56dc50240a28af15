// berth join: this machine becomes a node of the cluster that made the token. berthd, which
// will use the identity, does the work.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "command/commands.h"
#include "command/messages.h"
#include "command/up_home.h"
#include "net/paths.h"

namespace berth::command {
namespace {

constexpr std::string_view kJoinUsage =
    R"(usage: berth join - [--state DIR]
       berth join - -f slurm.conf [--spool DIR] [-N NAME]

Makes this machine a node of the cluster that made the token. On the controller's host

  scontrol token node=NAME       for a node of slurm.conf
  scontrol token newnode=NAME    for one that it does not name; the machine says what it has

prints one, as does berth up --listen; it is good once, for an hour. It is read from standard
input. As an argument in place of - it works too, but other users of this machine see it there.

Where a slurm.conf is found (-f, SLURM_CONF, /etc/slurm/slurm.conf) it is used; then start berthd.
Where there is none, it comes from the controller into a state directory, and berthd is started.

  --state DIR      that directory; default: the user's state directory
)";

/// The state directory ("" = the usual one) where no slurm.conf is there to be used; the other
/// words are berthd's.
Result<std::optional<std::string>> files_of_its_own(std::span<const std::string> words,
                                                    std::vector<std::string>& arguments) {
  std::optional<std::string> state;
  bool conf = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("--state=")) {
      state = words[i].substr(std::string_view("--state=").size());
    } else if (words[i] == "--state" && i + 1 < words.size()) {
      state = words[++i];
    } else {
      conf |= words[i] == "-f" || words[i].starts_with("--conf");
      arguments.push_back(words[i]);
    }
  }
  if (state && conf) return fail(Code::conflict, "--state is for a machine without a slurm.conf");
  if (state) return state;
  if (!conf && net::find_conf().empty()) return std::string();
  return std::nullopt;
}

}  // namespace

int run_join(std::span<const std::string> words, const request::Environment& /*environment*/) {
  const bool help = !words.empty() && (words.front() == "-h" || words.front() == "--help");
  if (help || words.empty() || (words.front().starts_with('-') && words.front() != "-")) {
    fmt::print(help ? stdout : stderr, "{}", kJoinUsage);
    return help ? 0 : 1;
  }
  std::string self(PATH_MAX, '\0');
  const ssize_t size = ::readlink("/proc/self/exe", self.data(), self.size());
  self.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::string program = self.substr(0, self.rfind('/') + 1) + "berthd";
  std::vector<std::string> arguments = {program, "--join", words.front()};
  auto own_files = files_of_its_own(words.subspan(1), arguments);
  if (!own_files) return print_error(own_files.error(), "berth join");
  if (*own_files) {
    const auto home = make_home(*std::exchange(*own_files, std::nullopt));
    if (!home) return print_error(home.error(), "berth join");
    if (home->has_conf() || home->controller() || home->agent()) {
      return print_error(fail(Code::conflict, fmt::format("there is a cluster in {}", home->state),
                              "`berth down` ends it, and its slurm.conf has to go; or choose "
                              "another place with --state DIR")
                             .error(),
                         "berth join");
    }
    arguments.insert(arguments.end(), {"--home", home->state});
  }
  std::vector<char*> argv;
  for (std::string& one : arguments) argv.push_back(one.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return print_error(fail(Code::io, fmt::format("cannot run {}: {}", program, std::strerror(errno)),
                          "berth and berthd belong in one directory")
                         .error(),
                     "berth join");
}

}  // namespace berth::command
