#include "node/join.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>

#include "auth/token.h"
#include "base/whole_file.h"
#include "net/client.h"
#include "net/paths.h"
#include "node/inventory.h"
#include "node/machine_identity.h"
#include "text/number.h"
#include "text/words.h"
#include "tls/authority.h"

namespace berth::node {
namespace {

constexpr std::chrono::seconds kPatience{10};

Result<net::Address> address_in(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : text::parse_number(text.substr(colon + 1), UINT16_MAX);
  if (!port) return fail(Code::bad_value, fmt::format("{} is no address", text));
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return net::Address::tcp(host, static_cast<std::uint16_t>(*port));
}

wire::Hardware hardware_of(const wire::NodeReport& node) {
  wire::Hardware out;
  out.set_sockets(node.sockets());
  out.set_cores_per_socket(node.cores_per_socket());
  out.set_threads_per_core(node.threads_per_core());
  out.set_memory_mb(node.memory_mb());
  *out.mutable_gres() = node.gres();
  return out;
}

/// The first line says where it is from, so that `berth up` does not take it for its own.
Result<void> put_files(const wire::NodeJoined& joined, const std::string& home) {
  bool has_conf = false;
  for (const wire::ConfFile& file : joined.files()) {
    constexpr std::array kNames = {"slurm.conf", "gres.conf", "cgroup.conf", "topology.conf",
                                   "topology.yaml"};
    if (std::ranges::find(kNames, file.name()) == kNames.end()) continue;
    std::string text = fmt::format("# Of cluster {}, by berth join.\n", joined.cluster());
    for (const std::string_view line : text::split(file.text(), '\n')) {
      if (!line.starts_with("# Made by berth up")) text.append(line).append("\n");
    }
    if (auto put = write_whole_file(fmt::format("{}/{}", home, file.name()), text, 0644); !put) {
      return put;
    }
    has_conf |= file.name() == "slurm.conf";
  }
  if (has_conf) return {};
  return fail(Code::io, "the controller gave no slurm.conf",
              "copy that of the controller to /etc/slurm/slurm.conf, or name it with -f");
}

Result<wire::NodeJoined> ask_to_join(const wire::JoinToken& token, wire::JoinNode message) {
  Error last = fail(Code::no_connection, "the token names no controller").error();
  for (const std::string& text : token.controllers()) {
    const auto address = address_in(text);
    if (!address) return pass(address.error());
    auto client = net::Client::connect(*address, kPatience);
    if (!client) {
      last = client.error();
      continue;
    }
    auto context = tls::Context::joining(token.fingerprint());
    if (!context) return pass(std::move(context.error()));
    client->secure(tls::Channel(context->open()));
    if (auto done = client->shake_hands(kPatience); !done) {
      // Whoever answers there is not the controller that made the token: it gets no secret.
      return fail(Code::no_credential,
                  fmt::format("what answers at {} is not the controller of the token: {}", text,
                              done.error().what()));
    }
    message.set_id(token.id());
    message.set_secret(token.secret());
    return client->ask<wire::NodeJoined>(message, kPatience);
  }
  return pass(std::move(last));
}

}  // namespace

Result<std::string> join_cluster(Options& options) {
  const bool wants_files = !options.home.empty();
  if (wants_files) {
    options.conf = options.home + "/slurm.conf";
    options.spool = options.home + "/spool";
    options.log = options.home + "/log/node.log";
  } else if (options.conf.empty()) {
    options.conf = net::find_conf();
  }
  if (options.conf.empty()) {
    return fail(Code::io, "no slurm.conf was found",
                "copy that of the controller to /etc/slurm/slurm.conf, or name it with -f");
  }
  std::string text = options.join;
  if (text == "-") std::getline(std::cin, text);
  const auto token = auth::read_join_token(text);
  if (!token) return pass(token.error());
  auto inventory = wants_files ? bare_inventory(options) : take_inventory(options);
  if (!inventory) return pass(std::move(inventory.error()));
  const std::string& host = inventory->machine.host;
  const std::string name = inventory->nodes.front().name();
  const std::string spool = spool_directory(options, inventory->keys, host, name);
  std::error_code trouble;
  std::filesystem::create_directories(spool, trouble);
  if (!trouble && wants_files) std::filesystem::create_directories(options.home + "/log", trouble);
  if (trouble) {
    return fail(Code::io, fmt::format("cannot make {}: {}", spool, trouble.message()));
  }
  auto made = joining_key(spool, token->id());
  if (!made) return pass(std::move(made.error()));
  wire::JoinNode message;
  message.set_wish(made->wish);
  message.set_wants_files(wants_files);
  *message.mutable_hardware() = hardware_of(inventory->nodes.front());
  const auto joined = ask_to_join(*token, std::move(message));
  if (!joined) return pass(joined.error());
  const MachineIdentity identity{.own = {.key = made->key, .certificate = joined->certificate()},
                                 .authority = joined->authority()};
  if (auto good = tls::Context::node(identity.own, identity.authority); !good) {
    return pass(std::move(good.error()));
  }
  if (wants_files) {
    if (auto put = put_files(*joined, options.home); !put) return pass(std::move(put.error()));
  }
  const auto before = MachineIdentity::load(spool);
  if (auto saved = identity.save(spool); !saved) return pass(std::move(saved.error()));
  forget_joining_key(spool);
  if (!before || before->authority != identity.authority) forget_controller(spool);
  const std::string node = joined->nodes_size() > 0 ? joined->nodes(0) : name;
  std::string words = fmt::format("this machine is node {} of cluster {}: {}/identity.pem\n", node,
                                  joined->cluster(), spool);
  const std::string file = net::authority_file(options.conf);
  if (auto put = write_whole_file(file, identity.authority, 0644); !put) {
    words += fmt::format("commands here need {}, which cannot be written: {}\n", file,
                         put.error().what());
  }
  if (wants_files) {
    options.name = node;
    return words + fmt::format(
                       "berthd is started, its log is {}; the next time start it as\n"
                       "  berthd -N {} -f {} --spool {} --log {}\n",
                       options.log, node, options.conf, options.spool, options.log);
  }
  if (node != name) {
    words += fmt::format("its name is {} by slurm.conf and host name: start it as `berthd -N {}`\n",
                         name, node);
  }
  return words + "now start berthd\n";
}

}  // namespace berth::node
