// berth join TOKEN: this machine becomes a node of the cluster that made the token. berthd, which
// will use the identity, does the work.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "command/commands.h"
#include "command/messages.h"

namespace berth::command {
namespace {

constexpr std::string_view kJoinUsage =
    R"(usage: berth join TOKEN [-f slurm.conf] [--spool DIR] [-N NAME]

Makes this machine a node of the cluster that made the token. On the controller's host

  scontrol token node=NAME

prints one; it is good once, for an hour. - instead of TOKEN reads it from standard input, where
other users of this machine do not see it. Then start berthd.
)";

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
  arguments.insert(arguments.end(), words.begin() + 1, words.end());
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
