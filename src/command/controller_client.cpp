#include "command/controller_client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "auth/munge.h"
#include "command/files.h"
#include "net/paths.h"
#include "text/number.h"
#include "text/words.h"
#include "tls/context.h"

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

constexpr std::size_t kMaxConf = std::size_t{16} << 20;
constexpr std::uint16_t kDefaultPort = 6817;

constexpr const char* kMungeSocket = "/run/munge/munge.socket.2";

/// Says who calls: a token when the user has one, else munge.
Result<wire::Hello> hello_for(const net::Client& client, const request::Environment& environment,
                              const std::string& program) {
  if (const std::string token = value_of(environment, "SLURM_JWT"); !token.empty()) {
    wire::Hello hello;
    hello.set_protocol(wire::kProtocol);
    hello.set_program(program);
    hello.set_token(token);
    return hello;
  }
  return auth::make_hello(program, client.session()->binding(auth::kCallerPurpose));
}

/// The controller of another machine: it proves that it is the cluster's, then the caller says who
/// he is.
Result<net::Client> call_remote(const net::Address& address,
                                const request::Environment& environment, const std::string& program,
                                const std::string& conf) {
  auto client = net::Client::connect(address, kConnectPatience);
  if (!client) return client;
  std::string path = value_of(environment, "BERTH_AUTHORITY");
  if (path.empty()) path = net::authority_file(conf);
  const auto authority = read_file(path, kMaxConf);
  if (!authority) {
    return fail(Code::no_credential, fmt::format("cannot read {}", path),
                "it tells the controller from others: copy it from the controller's host, or run "
                "`berth join` on a node");
  }
  auto context = tls::Context::caller(*authority);
  if (!context) return pass(std::move(context.error()));
  client->secure(tls::Channel(context->open()));
  if (auto done = client->shake_hands(kConnectPatience); !done) {
    return fail(Code::no_credential, fmt::format("what answers is not the controller of {}: {}",
                                                 path, done.error().what()));
  }
  auto hello = hello_for(*client, environment, program);
  if (!hello) return pass(std::move(hello.error()));
  client->queue(*hello);  // goes with the request
  return client;
}

/// The controller of this slurm.conf is on this machine, though it may be away for a moment: then
/// commands wait for its socket, since nobody else can say who calls.
bool controller_is_here(const std::string& conf, const net::Surroundings& who) {
  return std::ranges::any_of(net::node_sockets(conf, who), [](const std::string& socket) {
    const std::string directory = socket.substr(0, socket.rfind('/'));
    return ::access(net::controller_pid_file(directory).c_str(), F_OK) == 0;
  });
}

/// Within a job: the node's agent says who calls. `ask_first`: it is seen whether the controller
/// believes it, because there is another way to go.
Result<net::Client> call_by_agent(const std::string& path, const std::string& program,
                                  bool ask_first) {
  auto client = net::Client::connect(net::Address::unix_socket(path), kConnectPatience);
  if (!client) return client;
  wire::CallController call;
  call.set_program(program);
  client->queue(call);
  if (!ask_first) return client;
  if (auto pong = client->ask<wire::Pong>(wire::Ping(), kConnectPatience); !pong) {
    return pass(std::move(pong.error()));
  }
  return client;
}

/// SlurmctldHost=name(address), in order, with SlurmctldPort.
std::vector<net::Address> controller_addresses(const std::string& conf) {
  std::uint16_t port = kDefaultPort;
  if (const auto ports = conf_values(conf, "SlurmctldPort"); !ports.empty()) {
    const std::string first = ports.back().substr(0, ports.back().find('-'));
    port = static_cast<std::uint16_t>(text::parse_number(first, UINT16_MAX).value_or(kDefaultPort));
  }
  std::vector<net::Address> addresses;
  for (const std::string& host : conf_values(conf, "SlurmctldHost")) {
    const std::size_t open = host.find('(');
    const std::size_t close = host.find(')');
    const bool both = open != std::string::npos && close != std::string::npos && close > open;
    addresses.push_back(net::Address::tcp(
        both ? host.substr(open + 1, close - open - 1) : host.substr(0, open), port));
  }
  return addresses;
}

std::unexpected<Error> no_contact(std::string hint) {
  return fail(Code::no_connection, std::string(kNoContact), std::move(hint));
}

}  // namespace

std::string conf_path_of(const request::Environment& environment) {
  return net::find_conf(surroundings_of(environment));
}

std::vector<std::string> conf_values(const std::string& conf_path, std::string_view key) {
  std::vector<std::string> values;
  const auto text = read_file(conf_path, kMaxConf);
  if (!text) return values;
  for (std::string_view line : text::split(*text, '\n')) {
    line = text::trim(line.substr(0, line.find('#')));
    const std::size_t eq = line.find('=');
    if (eq == std::string_view::npos) continue;
    if (!text::equal_ignoring_case(text::trim(line.substr(0, eq)), key)) continue;
    const std::string_view value = text::trim(line.substr(eq + 1));
    values.emplace_back(value.substr(0, value.find_first_of(" \t")));
  }
  return values;
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
                                     std::string_view program) {
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
  const std::vector<net::Address> addresses = controller_addresses(conf);
  // A token is the caller's own choice. Then the agent of this machine, since munge of nodes is not
  // believed as a rule; who has no job here goes on to munge.
  const bool has_token = !value_of(environment, "SLURM_JWT").empty();
  const bool has_munge = ::access(kMungeSocket, F_OK) == 0;
  if (!addresses.empty() && !has_token && !controller_is_here(conf, who)) {
    for (const std::string& path : net::node_sockets(conf, who)) {
      if (auto client = call_by_agent(path, std::string(program), has_munge)) return client;
    }
  }
  std::string trouble;
  for (const net::Address& address : addresses) {
    auto client = call_remote(address, environment, std::string(program), conf);
    if (client) return client;
    if (client.error().code == Code::no_connection) continue;
    trouble = fmt::format("{}: {}", address.text(), client.error().what());
    if (!client.error().hint.empty()) trouble += "; " + client.error().hint;
  }
  if (!trouble.empty()) return no_contact(trouble);
  return no_contact(
      fmt::format("no controller runs for {}; `berth up` starts a cluster on this machine", conf));
}

}  // namespace berth::command
