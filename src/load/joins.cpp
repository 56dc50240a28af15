// What joins.h promises.
#include "load/joins.h"

#include <fmt/format.h>

#include <unordered_map>

#include "auth/token.h"
#include "net/client.h"
#include "tls/authority.h"
#include "wire/identity.pb.h"

namespace berth::load {
namespace {

constexpr std::chrono::seconds kJoinPatience{60};

/// The token's first controller; "host:port".
Result<net::Address> address_of(const wire::JoinToken& token) {
  if (token.controllers().empty()) return fail(Code::no_connection, "a token without controllers");
  return net::Address::parse(token.controllers(0));
}

Result<tls::Context> join(const wire::JoinToken& token, const tls::NewKey& key) {
  const auto address = address_of(token);
  if (!address) return pass(address.error());
  auto client = net::Client::connect(*address, kJoinPatience);
  if (!client) return pass(std::move(client.error()));
  auto context = tls::Context::joining(token.fingerprint());
  if (!context) return context;
  client->secure(tls::Channel(context->open()));
  if (auto done = client->shake_hands(kJoinPatience); !done) return pass(std::move(done.error()));
  wire::JoinNode message;
  message.set_id(token.id());
  message.set_secret(token.secret());
  message.set_wish(key.wish);
  const auto joined = client->ask<wire::NodeJoined>(message, kJoinPatience);
  if (!joined) return pass(joined.error());
  return tls::Context::node({.key = key.key, .certificate = joined->certificate()},
                            joined->authority());
}

}  // namespace

Result<Joined> join_all(const net::Address& controller, std::size_t count) {
  auto client = net::Client::connect(controller, kJoinPatience);
  if (!client) return pass(std::move(client.error()));
  wire::MakeTokens ask;
  ask.set_nodes(fmt::format("n[1-{}]", count));
  const auto tokens = client->ask<wire::TokensMade>(ask, kJoinPatience);
  if (!tokens) return pass(tokens.error());
  std::unordered_map<std::string, std::string> by_name;
  for (int i = 0; i < tokens->names_size(); ++i) by_name[tokens->names(i)] = tokens->tokens(i);
  // One key for all: what it costs to make keys is the nodes' matter.
  const auto key = tls::make_key();
  if (!key) return pass(key.error());
  Joined out;
  for (std::size_t i = 1; i <= count; ++i) {
    const auto token = auth::read_join_token(by_name[fmt::format("n{}", i)]);
    if (!token) return pass(token.error());
    if (i == 1) {
      const auto address = address_of(*token);
      if (!address) return pass(address.error());
      out.controller = *address;
    }
    auto identity = join(*token, *key);
    if (!identity) return pass(std::move(identity.error()));
    out.identities.push_back(std::move(*identity));
  }
  return out;
}

}  // namespace berth::load
