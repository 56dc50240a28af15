#include "command/controller_client.h"

#include <fmt/format.h>
#include <unistd.h>

#include "command/files.h"
#include "net/paths.h"

namespace berth::command {
namespace {

constexpr std::string_view kNoContact = "Unable to contact slurm controller (connect failure)";
constexpr auto kConnectPatience = std::chrono::seconds(10);

std::string value_of(const request::Environment& environment, const char* name) {
  const auto at = environment.find(name);
  return at == environment.end() ? std::string() : at->second;
}

net::Surroundings surroundings_of(const request::Environment& environment) {
  net::Surroundings who;
  who.uid = ::geteuid();
  who.runtime_directory = value_of(environment, "XDG_RUNTIME_DIR");
  who.state_home = value_of(environment, "XDG_STATE_HOME");
  who.home = value_of(environment, "HOME");
  return who;
}

std::unexpected<Error> no_contact(std::string hint) {
  return fail(Code::no_connection, std::string(kNoContact), std::move(hint));
}

}  // namespace

std::string conf_path_of(const request::Environment& environment) {
  return net::find_conf(surroundings_of(environment));
}

bool controller_expected(const request::Environment& environment) {
  const net::Surroundings who = surroundings_of(environment);
  const std::string conf = net::find_conf(who);
  if (conf.empty()) return false;
  net::Surroundings root = who;
  root.uid = 0;
  return is_directory(net::run_directory(conf, who)) ||
         is_directory(net::run_directory(conf, root));
}

Error lost_controller() {
  return no_contact(
             "the controller went away before it answered; `scontrol ping` says whether it is back")
      .error();
}

Result<net::Client> reach_controller(const request::Environment& environment,
                                     std::string_view /*program*/) {
  const net::Surroundings who = surroundings_of(environment);
  const std::string conf = net::find_conf(who);
  if (conf.empty()) {
    return no_contact("no cluster is known here; `berth up` starts one on this machine");
  }
  const std::vector<std::string> sockets = net::controller_sockets(conf, who);
  for (const std::string& path : sockets) {
    auto client = net::Client::connect(net::Address::unix_socket(path), kConnectPatience);
    if (client) return client;
  }
  return no_contact(
      fmt::format("no controller runs for {}; `berth up` starts a cluster on this machine", conf));
}

}  // namespace berth::command
