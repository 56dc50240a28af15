#include "command/controller_client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "auth/munge.h"
#include "command/files.h"
#include "net/paths.h"
#include "text/number.h"
#include "text/words.h"

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

/// The uid of SlurmUser, from /etc/passwd: a static program has no other name service.
std::optional<uid_t> uid_of(std::string_view name) {
  const auto users = read_file("/etc/passwd", kMaxConf);
  if (!users) return std::nullopt;
  for (const std::string_view line : text::split(*users, '\n')) {
    const auto fields = text::split(line, ':');
    if (fields.size() < 3 || fields[0] != name) continue;
    if (const auto uid = text::parse_number(fields[2], UINT32_MAX)) return static_cast<uid_t>(*uid);
  }
  return std::nullopt;
}

/// root, this user's own cluster, or SlurmUser.
bool may_be_controller(uid_t uid, const std::string& conf) {
  if (uid == 0 || uid == ::geteuid()) return true;
  const auto names = conf_values(conf, "SlurmUser");
  return !names.empty() && uid_of(names.back()) == uid;
}

/// Greets over TCP: each side proves who it is by a munge credential.
Result<net::Client> greeted(net::Client client, const std::string& program,
                            const std::string& conf) {
  auto hello = auth::make_hello(program);
  if (!hello) return pass(std::move(hello.error()));
  auto answer = client.ask<wire::Hello>(*hello, kConnectPatience);
  if (!answer) return pass(std::move(answer.error()));
  const auto server = auth::check_hello(*answer);
  if (!server) return pass(server.error());
  if (!may_be_controller(server->uid, conf)) {
    return fail(Code::no_connection, "Unable to contact slurm controller (connect failure)",
                fmt::format("what answers is run by uid {}, which is neither root nor SlurmUser",
                            server->uid));
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
  std::string trouble;
  for (const net::Address& address : controller_addresses(conf)) {
    auto client = net::Client::connect(address, kConnectPatience);
    if (!client) continue;
    auto known = greeted(std::move(*client), std::string(program), conf);
    if (known) return known;
    trouble = fmt::format("{}: {}", address.text(), known.error().what());
    if (!known.error().hint.empty()) trouble += "; " + known.error().hint;
  }
  if (!trouble.empty()) return no_contact(trouble);
  return no_contact(
      fmt::format("no controller runs for {}; `berth up` starts a cluster on this machine", conf));
}

}  // namespace berth::command
