// Who belongs to the cluster: machines that join, renew their identity or lose it, tokens, and
// nodes that vouch for the users of their jobs.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "auth/munge.h"
#include "auth/token.h"
#include "controller/engine.h"
#include "text/hostlist.h"
#include "wire/refusal.h"

namespace berth::controller {
namespace {

/// Of a user's token, as Slurm has it.
constexpr job::Time kUserTokenSeconds = 1800;
/// Debian's group to which nothing belongs.
constexpr std::uint32_t kNogroup = 65534;
constexpr job::Time kLongestToken = job::Time{366} * 86400;

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

/// What the node has had up to now is void: keys for tickets, and the connection of its agent.
void Engine::new_identity(Turn& turn, const std::string& node) {
  tickets_.set_generation(node, parts_.identities.generation(node));
  if (const auto peer = agents_.serving(node)) {
    outbox_.close(*peer);
    peer_left(turn, *peer);
  }
}

/// A token that was made for a new node makes it, of what its machine says it has.
Result<void> Engine::make_invited_node(Turn& turn, const wire::JoinNode& message) {
  const auto invited = parts_.identities.invitation(message, turn.now);
  if (!invited) return pass(invited.error());
  if (!invited->new_node() || setup_.cluster.find_node(invited->node())) return {};
  auto node = node_of_machine(invited->node(), message.hardware());
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

void Engine::join_node(Turn& turn, const Request& request) {
  const auto message = decoded<wire::JoinNode>(request);
  if (!message) return;
  wire::NodeJoined reply;
  const auto refused = [&](const Error& why) {
    log_.of("machines that may not join").info("a machine may not join: {}", why.what());
    *reply.mutable_refusal() = wire::to_refusal(why);
    outbox_.answer(request.peer, reply);
  };
  if (auto made = make_invited_node(turn, *message); !made) return refused(made.error());
  const auto joined = parts_.identities.join(*message, turn.now);
  if (!joined) return refused(joined.error());
  log_.info("a machine has joined as node {}", joined->node);
  parts_.front.set_certificates(parts_.identities.serials());
  new_identity(turn, joined->node);
  reply.set_certificate(joined->certificate);
  reply.set_authority(parts_.identities.authority().certificate());
  reply.add_nodes(joined->node);
  reply.set_cluster(setup_.node_config.cluster_name());
  if (message->wants_files()) put_conf_files(reply);
  answer_when_stored(turn, request.peer, reply);
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
    parts_.front.set_certificates(parts_.identities.serials());
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
  const job::Time usual = to_join ? kJoinTokenSeconds : kUserTokenSeconds;
  const job::Time lifespan = ask->lifespan() == 0 ? usual : ask->lifespan();
  if (lifespan < 0 || lifespan > kLongestToken) {
    return refuse(request.peer,
                  fail(Code::bad_value, fmt::format("a token cannot live for {} seconds", lifespan),
                       fmt::format("at most {}", kLongestToken))
                      .error());
  }
  const bool for_another = !ask->user().empty() && users_.uid_of(ask->user()) != request.caller.uid;
  if ((to_join || for_another) && !request.caller.privileged) {
    return refuse(request.peer, fail(Code::access_denied, "Access/permission denied",
                                     "only root and SlurmUser make tokens for nodes and for "
                                     "other users")
                                    .error());
  }
  wire::TokensMade reply;
  reply.set_expires(turn.now + lifespan);
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
  const auto secrets =
      parts_.identities.invite(*nodes, ask->new_nodes(), reply.expires(), turn.now);
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
  const auto nodes = known_nodes(ask->nodes());
  if (!nodes) return refuse(request.peer, nodes.error());
  if (auto done = parts_.identities.revoke(*nodes); !done) {
    return refuse(request.peer, done.error());
  }
  parts_.front.set_certificates(parts_.identities.serials());
  for (const std::string& node : *nodes) {
    log_.info("the identity of node {} is revoked by uid {}", node, request.caller.uid);
    new_identity(turn, node);
  }
  outbox_.answer(request.peer, wire::Done());
}

/// Nor does anybody get a group by the word of a node that is not his.
std::uint32_t Engine::own_group(std::uint32_t uid, std::uint32_t said) {
  const auto user = users_.by_uid(uid);
  if (!user) return kNogroup;
  return std::ranges::find(user->groups, said) != user->groups.end() ? said : user->gid;
}

void Engine::vouch(Turn& /*turn*/, const Request& request) {
  const auto hello = decoded<wire::Hello>(request);
  if (!hello || !request.node) return;
  if (auto good = auth::check_protocol(*hello); !good) return refuse(request.peer, good.error());
  const std::uint32_t uid = hello->vouched_uid();
  // A machine that was stolen may say anything: it is believed about those whose jobs it runs
  // anyway, and nobody becomes an administrator by the word of a node.
  const auto has_job_on = [&](const std::string& node) {
    if (!parts_.identities.check(*request.node, node)) return false;
    const job::NodeState* state = state_->find_node(node);
    return state != nullptr && std::ranges::any_of(state->jobs, [&](job::JobId id) {
             const job::Job* job = state_->find(id);
             return job != nullptr && job->uid == uid;
           });
  };
  if (!hello->has_vouched_uid() || uid == 0 ||
      std::ranges::none_of(request.node->nodes, has_job_on)) {
    refuse(request.peer,
           fail(Code::access_denied,
                fmt::format("user {} has no job on {}, whose agent says who he is", uid,
                            request.node->nodes.front()),
                "from a machine of the cluster without munge, commands work within jobs; "
                "elsewhere munge or a token (SLURM_JWT) says who you are")
               .error());
    return outbox_.close(request.peer);
  }
  outbox_.introduce(request.peer, Caller{uid, own_group(uid, hello->vouched_gid()), false});
}

}  // namespace berth::controller
