#include "node/join.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <iostream>

#include "auth/token.h"
#include "base/whole_file.h"
#include "net/client.h"
#include "net/paths.h"
#include "node/inventory.h"
#include "node/machine_identity.h"
#include "text/number.h"
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

Result<wire::NodeJoined> ask_to_join(const wire::JoinToken& token, const std::string& wish) {
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
    wire::JoinNode message;
    message.set_id(token.id());
    message.set_secret(token.secret());
    message.set_wish(wish);
    return client->ask<wire::NodeJoined>(message, kPatience);
  }
  return pass(std::move(last));
}

}  // namespace

Result<std::string> join_cluster(const Options& given) {
  Options options = given;
  if (options.conf.empty()) options.conf = net::find_conf();
  if (options.conf.empty()) {
    return fail(Code::io, "no slurm.conf was found",
                "copy that of the controller to /etc/slurm/slurm.conf, or name it with -f");
  }
  std::string text = options.join;
  if (text == "-") std::getline(std::cin, text);
  const auto token = auth::read_join_token(text);
  if (!token) return pass(token.error());
  auto inventory = take_inventory(options);
  if (!inventory) return pass(std::move(inventory.error()));
  const std::string& host = inventory->machine.host;
  const std::string name = inventory->nodes.empty() ? host : inventory->nodes.front().name();
  const std::string spool = spool_directory(options, inventory->keys, host, name);
  std::error_code trouble;
  std::filesystem::create_directories(spool, trouble);
  if (trouble) {
    return fail(Code::io, fmt::format("cannot make {}: {}", spool, trouble.message()));
  }
  auto made = tls::make_key();
  if (!made) return pass(std::move(made.error()));
  const auto joined = ask_to_join(*token, made->wish);
  if (!joined) return pass(joined.error());
  const MachineIdentity identity{.own = {.key = made->key, .certificate = joined->certificate()},
                                 .authority = joined->authority()};
  if (auto good = tls::Context::node(identity.own, identity.authority); !good) {
    return pass(std::move(good.error()));
  }
  const auto before = MachineIdentity::load(spool);
  if (auto saved = identity.save(spool); !saved) return pass(std::move(saved.error()));
  if (!before || before->authority != identity.authority) forget_controller(spool);
  const std::string node = joined->nodes_size() > 0 ? joined->nodes(0) : name;
  std::string words = fmt::format("this machine is node {} of cluster {}: {}/identity.pem\n", node,
                                  joined->cluster(), spool);
  const std::string file = net::authority_file(options.conf);
  if (auto put = write_whole_file(file, identity.authority, 0644); !put) {
    words += fmt::format("commands here need {}, which cannot be written: {}\n", file,
                         put.error().what());
  }
  if (node != name) {
    words += fmt::format("its name is {} by slurm.conf and host name: start it as `berthd -N {}`\n",
                         name, node);
  }
  return words + "now start berthd\n";
}

}  // namespace berth::node
