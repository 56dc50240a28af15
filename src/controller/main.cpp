// berthctld: the controller of a cluster.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/version.h"
#include "controller/daemon.h"
#include "controller/offline.h"
#include "controller/options.h"

namespace {

int complain(const berth::Error& error) {
  if (error.messages.empty()) fmt::print(stderr, "berthctld: {}\n", error.what());
  for (const berth::Message& message : error.messages) {
    fmt::print(stderr, "berthctld: {}\n", message.text);
  }
  if (!error.hint.empty()) fmt::print(stderr, "berthctld: {}\n", error.hint);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  auto options = berth::controller::read_options(words);
  if (!options) return complain(options.error());
  if (options->help) {
    fmt::print("{}", berth::controller::kUsage);
    return 0;
  }
  if (options->version) {
    fmt::print("{}\n", berth::kBerthVersion);
    return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);
  if (options->offline()) {
    const auto code = berth::controller::run_offline(*options);
    return code ? *code : complain(code.error());
  }
  if (auto done = berth::controller::run_controller(*options); !done) {
    return complain(done.error());
  }
  return 0;
}
