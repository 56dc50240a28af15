// berth power on|off NODES: pulls the plug of pretended nodes and puts it in again. What
// SuspendProgram and ResumeProgram of such a cluster call where others have ipmitool or a cloud.
#include <fmt/format.h>

#include "command/controller_client.h"
#include "command/messages.h"
#include "net/client.h"
#include "net/paths.h"
#include "text/hostlist.h"
#include "wire/step.pb.h"

namespace berth::command {
namespace {

constexpr std::string_view kPowerUsage = R"(usage: berth power on|off NODES

Switches pretended nodes (berth up --emulate) off and on, as if somebody pulled their plug: what runs
there is gone, and the controller does not hear of them until they are on again. Real nodes are switched
by the programs that slurm.conf names.

  SuspendProgram   a script with: exec berth power off "$1"
  ResumeProgram    a script with: exec berth power on "$1"

`scontrol power up|down NODES` asks the controller instead, which then calls these programs.
)";

Result<net::Client> reach_agent(const request::Environment& environment) {
  const std::string conf = conf_path_of(environment);
  for (const std::string& path : net::node_sockets(conf)) {
    auto client = net::Client::connect(net::Address::unix_socket(path), std::chrono::seconds(10));
    if (client) return client;
  }
  return fail(Code::no_connection, "no agent of pretended nodes runs on this machine",
              "SLURM_CONF names the cluster; `berth status` shows whether it runs");
}

int print_power_error(const Error& error) {
  return print_error(error, "berth power");
}

}  // namespace

int run_power(std::span<const std::string> words, const request::Environment& environment) {
  const bool help = !words.empty() && (words.front() == "-h" || words.front() == "--help");
  if (help || words.size() != 2 || (words.front() != "on" && words.front() != "off")) {
    fmt::print(help ? stdout : stderr, "{}", kPowerUsage);
    return help ? 0 : 1;
  }
  auto names = text::expand_hostlist(words[1]);
  if (!names) return print_power_error(names.error());
  wire::SwitchNodes ask;
  for (const std::string& name : *names) ask.add_nodes(name);
  ask.set_on(words.front() == "on");
  auto client = reach_agent(environment);
  if (!client) return print_power_error(client.error());
  const auto done = client->ask<wire::Done>(ask);
  return done ? 0 : print_power_error(done.error());
}

}  // namespace berth::command
