// berthd: the agent of a node, or of the pretended nodes of a cluster.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/version.h"
#include "node/agent.h"
#include "node/hardware_text.h"
#include "node/join.h"
#include "node/options.h"

namespace {

int complain(const berth::Error& error) {
  if (error.messages.empty()) fmt::print(stderr, "berthd: {}\n", error.what());
  for (const berth::Message& message : error.messages) {
    fmt::print(stderr, "berthd: {}\n", message.text);
  }
  if (!error.hint.empty()) fmt::print(stderr, "berthd: {}\n", error.hint);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  auto options = berth::node::read_options(words);
  if (!options) return complain(options.error());
  if (options->help) {
    fmt::print("{}", berth::node::kUsage);
    return 0;
  }
  if (options->version) {
    fmt::print("{}\n", berth::kBerthVersion);
    return 0;
  }
  if (options->print_hardware || options->print_gres) {
    auto text = berth::node::hardware_text(*options);
    if (!text) return complain(text.error());
    fmt::print("{}", *text);
    return 0;
  }
  if (!options->join.empty()) {
    auto joined = berth::node::join_cluster(*options);
    if (!joined) return complain(joined.error());
    fmt::print("{}", *joined);
    if (options->home.empty()) return 0;
    std::fflush(stdout);
  }
  if (auto done = berth::node::run_agent(*options); !done) return complain(done.error());
  return 0;
}
