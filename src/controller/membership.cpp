// Who belongs to the cluster: machines that join, renew their identity or lose it, tokens, and
// nodes that vouch for the users of their jobs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "auth/munge.h"
#include "auth/token.h"
#include "controller/engine.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "wire/refusal.h"

namespace berth::controller {
namespace {

/// Debian's group to which nothing belongs.
constexpr std::uint32_t kNogroup = 65534;

}  // namespace

Result<std::vector<std::string>> Engine::known_nodes(const std::string& list) const {
  auto names = text::expand_hostlist(list);
  if (!names) return pass(std::move(names.error()));
  if (names->empty()) return fail(Code::bad_value, "no node was named");
  for (const std::string& name : *names) {
    if (!setup_.cluster.find_node(name)) {
      return fail(Code::invalid_node_name, fmt::format("Invalid node name specified: {}", name),
                  "`sinfo -N` lists the nodes of this cluster");
    }
  }
  return names;
}

Result<std::vector<std::string>> Engine::new_nodes(const std::string& list) const {
  auto names = text::expand_hostlist(list);
  if (!names) return pass(std::move(names.error()));
  if (names->empty()) return fail(Code::bad_value, "no node was named");
  for (const std::string& name : *names) {
    if (setup_.cluster.find_node(name)) {
      return fail(Code::conflict, fmt::format("{} is a node of this cluster already", name),
                  fmt::format("`scontrol token node={}` lets a machine join as it", name));
    }
    if (auto good = check_node_name(name); !good) return pass(std::move(good.error()));
  }
  return names;
}

/// What the node has had up to now is void: keys for tickets, the connection of its agent, and all
/// others that were opened with its certificate. Returns the agent that has served it.
std::optional<Peer> Engine::new_identity(const std::string& node) {
  tickets_.set_generation(node, parts_.identities.generation(node));
  outbox_.close_all_of(node);
  return agents_.serving(node);
}

/// A token that was made for a new node makes it, of what its machine says it has.
Result<void> Engine::make_invited_node(Turn& turn, const std::string& name,
                                       const wire::Hardware& hardware) {
  if (setup_.cluster.find_node(name)) return {};
  auto node = node_of_machine(name, hardware);
  if (!node) return pass(std::move(node.error()));
  ChangeContext context = change_context();
  if (auto added = add_nodes(*state_, {*node}, context, turn.now); !added) return added;
  turn.asked_for_changes = true;
  nodes_changed();
  configure_agents(turn);
  log_.info("a new node: {}", node->line);
  return {};
}

/// What a node reads, for a machine that has none of it. No other file of the directory is given
/// away: some have passwords in them.
void Engine::put_conf_files(wire::NodeJoined& reply) const {
  const std::string folder = setup_.conf_path.substr(0, setup_.conf_path.rfind('/') + 1);
  const auto put = [&](const char* name, const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return;
    wire::ConfFile& one = *reply.add_files();
    one.set_name(name);
    one.mutable_text()->assign(std::istreambuf_iterator<char>(file), {});
  };
  put("slurm.conf", setup_.conf_path);
  for (const char* name : {"gres.conf", "cgroup.conf", "topology.conf", "topology.yaml"}) {
    put(name, folder + name);
  }
}

void Engine::refuse_join(Peer peer, const Error& why) {
  log_.of("machines that may not join").info("a machine may not join: {}", why.what());
  wire::NodeJoined reply;
  *reply.mutable_refusal() = wire::to_refusal(why);
  outbox_.answer(peer, reply);
}

void Engine::join_node(Turn& turn, const Request& request) {
  const auto message = decoded<wire::JoinNode>(request);
  if (!message) return;
  const Peer peer = request.peer;
  // All that can go wrong comes first: then the token is spent, and the machine before is out.
  const job::Time now = clock_.even_seconds();
  auto offer = parts_.identities.offer(*message, now);
  if (!offer) return refuse_join(peer, offer.error());
  if (degraded_) return refuse_join(peer, store_error());
  const bool files = message->wants_files();
  if (!offer->token.new_node()) {
    if (const auto left = accept_join(peer, *offer, request.from, files, now)) {
      peer_left(turn, *left);
    }
    return;
  }
  auto made = make_invited_node(turn, offer->token.node(), message->hardware());
  if (!made) return refuse_join(peer, made.error());
  turn.thens.push_back({peer, Then::When::stored,
                        [this, peer, offer = std::move(*offer), from = request.from, files, now] {
                          if (const auto left = accept_join(peer, offer, from, files, now)) {
                            closed(*left);
                          }
                        }});
}

std::optional<Peer> Engine::accept_join(Peer peer, const Identities::Offer& offer,
                                        const std::string& from, bool files, job::Time now) {
  const std::string& node = offer.token.node();
  const auto first_time = parts_.identities.accept(offer, from, now);
  if (!first_time) {
    refuse_join(peer, first_time.error());
    return std::nullopt;
  }
  std::optional<Peer> left;
  if (*first_time) {
    log_.info("a machine has joined as node {}", node);
    left = new_identity(node);
    trust_changed_ = true;
    parts_.set_certificates(parts_.identities.serials());
  }
  wire::NodeJoined reply;
  reply.set_certificate(offer.certificate);
  reply.set_authority(parts_.identities.authority().certificate());
  reply.add_nodes(node);
  reply.set_cluster(setup_.node_config.cluster_name());
  if (files) put_conf_files(reply);
  outbox_.answer(peer, reply);
  return left;
}

void Engine::renew_identity(Turn& /*turn*/, const Request& request) {
  const auto message = decoded<wire::RenewIdentity>(request);
  if (!message || !request.node) return;
  wire::IdentityRenewed reply;
  // The certificate before it becomes void: a copy of a machine could take that of the machine.
  const auto& nodes = request.node->nodes;
  const auto other = std::ranges::find_if(nodes, [&](const std::string& node) {
    const auto first = agents_.serving(node);
    return first && *first != request.peer;
  });
  if (other != nodes.end()) {
    *reply.mutable_refusal() = wire::to_refusal(
        fail(Code::conflict, fmt::format("node {} is served by another agent", *other)).error());
    return outbox_.answer(request.peer, reply);
  }
  if (auto certificate = parts_.identities.renew(*request.node, message->wish())) {
    parts_.set_certificates(parts_.identities.serials());
    reply.set_certificate(std::move(*certificate));
  } else {
    *reply.mutable_refusal() = wire::to_refusal(certificate.error());
  }
  outbox_.answer(request.peer, reply);
}

void Engine::make_tokens(Turn& turn, const Request& request) {
  const auto ask = decoded<wire::MakeTokens>(request);
  if (!ask) return;
  const bool to_join = !ask->nodes().empty();
  const bool for_another = !ask->user().empty() && users_.uid_of(ask->user()) != request.caller.uid;
  const auto lifespan =
      token_lifespan(request.caller,
                     {.to_join = to_join, .for_another = for_another, .lifespan = ask->lifespan()});
  if (!lifespan) return refuse(request.peer, lifespan.error());
  wire::TokensMade reply;
  reply.set_expires(turn.now + *lifespan);
  if (!to_join) {
    auth::UserClaim claim{.uid = request.caller.uid, .gid = request.caller.gid};
    if (for_another) {
      const auto uid = users_.uid_of(ask->user());
      const auto user = uid ? users_.by_uid(*uid) : std::nullopt;
      if (!user) {
        return refuse(request.peer,
                      fail(Code::bad_value, fmt::format("Invalid user: {}", ask->user())).error());
      }
      claim.uid = *uid;
      claim.gid = user->gid;
    }
    claim.expires = reply.expires();
    claim.generation = trust_->token_generation(claim.uid);
    reply.add_names(users_.name_of(claim.uid));
    reply.add_tokens(auth::user_token(claim, parts_.cluster_key));
    return outbox_.answer(request.peer, reply);
  }
  if (parts_.addresses.empty()) {
    return refuse(request.peer, fail(Code::conflict, "this cluster is of one machine",
                                     "name the other machines in slurm.conf, with SlurmctldHost, "
                                     "then restart berthctld; or start it with `berth up "
                                     "--listen NODES`")
                                    .error());
  }
  const auto nodes = ask->new_nodes() ? new_nodes(ask->nodes()) : known_nodes(ask->nodes());
  if (!nodes) return refuse(request.peer, nodes.error());
  const job::Time now = clock_.even_seconds();
  const auto secrets = parts_.identities.invite(*nodes, ask->new_nodes(), now + *lifespan, now);
  if (!secrets) return refuse(request.peer, secrets.error());
  for (const Identities::Secret& secret : *secrets) {
    wire::JoinToken token;
    for (const std::string& address : parts_.addresses) token.add_controllers(address);
    token.set_fingerprint(parts_.identities.authority().fingerprint());
    token.set_id(secret.id);
    token.set_secret(secret.secret);
    reply.add_names(secret.node);
    reply.add_tokens(auth::join_token_text(token));
  }
  outbox_.answer(request.peer, reply);
}

void Engine::revoke_nodes(Turn& turn, const Request& request) {
  const auto ask = decoded<wire::RevokeNodes>(request);
  if (!ask) return;
  if (!ask->user().empty()) {
    if (auto done = revoke_tokens(ask->user(), request.caller); !done) {
      return refuse(request.peer, done.error());
    }
    if (ask->nodes().empty()) return outbox_.answer(request.peer, wire::Done());
  }
  const auto nodes = known_nodes(ask->nodes());
  if (!nodes) return refuse(request.peer, nodes.error());
  if (auto done = parts_.identities.revoke(*nodes); !done) {
    return refuse(request.peer, done.error());
  }
  parts_.set_certificates(parts_.identities.serials());
  for (const std::string& node : *nodes) {
    log_.info("the identity of node {} is revoked by uid {}", node, request.caller.uid);
    if (const auto left = new_identity(node)) peer_left(turn, *left);
  }
  outbox_.answer(request.peer, wire::Done());
}

Result<void> Engine::revoke_tokens(const std::string& user, const Caller& by) {
  auto uid = users_.uid_of(user);
  if (!uid) {
    // Somebody who is unknown by now may still have one.
    if (const auto number = text::parse_number(user, UINT32_MAX)) {
      uid = static_cast<std::uint32_t>(*number);
    }
  }
  if (!uid) return fail(Code::bad_value, fmt::format("Invalid user: {}", user));
  if (auto done = parts_.identities.revoke_tokens(*uid); !done) return done;
  log_.info("the tokens of {} are revoked by uid {}", user, by.uid);
  publish_trust();  // the answer says that it is so
  outbox_.close_tokens_of(*uid);
  return {};
}

/// Nor does anybody get a group by the word of a node that is not his.
std::uint32_t Engine::own_group(std::uint32_t uid, std::uint32_t said) {
  const auto user = users_.by_uid(uid);
  if (!user) return kNogroup;
  return std::ranges::find(user->groups, said) != user->groups.end() ? said : user->gid;
}

void Engine::publish_trust() {
  Trust trust{.administrators = setup_.policy.admins,
              .munge_admins = setup_.keys().controller.contains("munge_admins"),
              .munge_from_nodes = setup_.keys().controller.contains("munge_from_nodes")};
  if (::geteuid() != 0) trust.owner = ::geteuid();
  trust.token_generations = parts_.identities.token_generations();
  for (const auto& [node, address] : parts_.identities.addresses()) {
    if (setup_.cluster.find_node(node)) trust.nodes_at[address] = node;
  }
  trust_ = std::make_shared<const Trust>(std::move(trust));
  trust_changed_ = false;
  parts_.set_trust(trust_);
}

void Engine::vouch(Turn& /*turn*/, const Request& request) {
  const auto hello = decoded<wire::Hello>(request);
  if (!hello || !request.node) return;
  if (auto good = auth::check_protocol(*hello); !good) return refuse(request.peer, good.error());
  const std::uint32_t uid = hello->vouched_uid();
  const auto no = [&](const Error& why) {
    refuse(request.peer, why);
    outbox_.close(request.peer);
  };
  const auto user = trust_->admit(uid, own_group(uid, hello->vouched_gid()), Proof::vouched);
  if (hello->has_vouched_uid() && !user) return no(user.error());
  if (!hello->has_vouched_uid() || !may_vouch(*request.node, uid)) {
    return no(fail(Code::access_denied,
                   fmt::format("user {} has no job on {}, whose agent says who he is", uid,
                               request.node->nodes.front()),
                   "on a node commands work within jobs; elsewhere munge or a token (SLURM_JWT) "
                   "says who you are")
                  .error());
  }
  vouched_[request.peer] = {.node = request.node, .uid = uid};
  outbox_.introduce(request.peer, *user);
}

/// A machine that was stolen may say anything: it is believed about those whose jobs it runs
/// anyway, as long as it does.
bool Engine::may_vouch(const tls::Bearer& bearer, std::uint32_t uid) const {
  return std::ranges::any_of(bearer.nodes, [&](const std::string& node) {
    if (!parts_.identities.check(bearer, node)) return false;
    const job::NodeState* state = state_->find_node(node);
    return state != nullptr && std::ranges::any_of(state->jobs, [&](job::JobId id) {
             const job::Job* job = state_->find(id);
             return job != nullptr && job->uid == uid;
           });
  });
}

void Engine::close_vouched_without_job() {
  for (const auto& [peer, vouched] : vouched_) {
    if (!may_vouch(*vouched.node, vouched.uid)) outbox_.close(peer);  // peer_left() follows
  }
}

}  // namespace berth::controller
