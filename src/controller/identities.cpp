#include "controller/identities.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "auth/random.h"
#include "auth/token.h"
#include "base/whole_file.h"

namespace berth::controller {
namespace {

bool used(const wire::PendingToken& token) {
  return !token.certificate().empty();
}

std::unexpected<Error> used_before() {
  return fail(Code::no_credential, "the token is not known, or was used before",
              "a token is good once; `scontrol token node=NAME` makes another");
}

}  // namespace

std::string authority_path(const std::string& state) {
  return state + '/' + kAuthorityFile;
}

Error void_certificate(const std::string& node) {
  return fail(Code::access_denied,
              fmt::format("the certificate of this machine for node {} was revoked or replaced",
                          node),
              fmt::format("`scontrol token node={}` lets it join again", node))
      .error();
}

Result<Identities> Identities::load(const std::string& state, const std::string& cluster) {
  auto authority = tls::Authority::load_or_create(authority_path(state), cluster);
  if (!authority) return pass(std::move(authority.error()));
  Identities out(state + "/identities", std::move(*authority));
  auto text = read_private_file(out.path_);
  if (!text) return pass(std::move(text.error()));
  wire::Identities file;
  if (!file.ParseFromString(*text)) {
    return fail(Code::bad_config, fmt::format("{} is damaged", out.path_),
                "take it from a backup; without it every node has to join anew: remove it then");
  }
  for (wire::NodeIdentity& node : *file.mutable_nodes()) {
    const std::string name = node.node();
    out.nodes_[name] = std::move(node);
  }
  for (wire::PendingToken& token : *file.mutable_tokens()) {
    const std::string id = token.id();
    out.tokens_[id] = std::move(token);
  }
  for (const wire::UserTokens& user : file.users()) out.users_[user.uid()] = user.generation();
  return out;
}

Result<void> Identities::save() const {
  wire::Identities file;
  for (const auto& [name, node] : nodes_) *file.add_nodes() = node;
  for (const auto& [id, token] : tokens_) *file.add_tokens() = token;
  for (const auto& [uid, generation] : users_) {
    wire::UserTokens& user = *file.add_users();
    user.set_uid(uid);
    user.set_generation(generation);
  }
  return write_whole_file(path_, file.SerializeAsString(), 0600);
}

std::uint64_t Identities::generation(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? 0 : found->second.generation();
}

std::map<std::string, std::uint64_t> Identities::generations() const {
  std::map<std::string, std::uint64_t> out;
  for (const auto& [name, node] : nodes_) out[name] = node.generation();
  return out;
}

Result<std::vector<Identities::Secret>> Identities::invite(const std::vector<std::string>& nodes,
                                                           bool new_nodes, job::Time expires,
                                                           job::Time now) {
  std::erase_if(tokens_, [&](const auto& entry) { return entry.second.expires() < now; });
  const auto before = tokens_;
  std::vector<Secret> out;
  for (const std::string& node : nodes) {
    Secret secret{.id = auth::random_token(), .secret = auth::random_bytes(32), .node = node};
    wire::PendingToken& token = tokens_[secret.id];
    token.set_id(secret.id);
    token.set_secret_hash(auth::secret_hash(secret.secret));
    token.set_node(node);
    token.set_expires(expires);
    token.set_new_node(new_nodes);
    out.push_back(std::move(secret));
  }
  if (auto saved = save(); !saved) {
    tokens_ = before;
    return pass(std::move(saved.error()));
  }
  return out;
}

Result<wire::PendingToken> Identities::invitation(const wire::JoinNode& message,
                                                  job::Time now) const {
  const auto found = tokens_.find(message.id());
  if (found == tokens_.end() ||
      !auth::same_bytes(found->second.secret_hash(), auth::secret_hash(message.secret()))) {
    return used_before();
  }
  if (found->second.expires() < now) {
    return fail(Code::no_credential, "the token has expired",
                "`scontrol token node=NAME` makes another");
  }
  return found->second;
}

Result<Identities::Offer> Identities::offer(const wire::JoinNode& message, job::Time now) const {
  const auto invited = invitation(message, now);
  if (!invited) return pass(invited.error());
  Offer out{.token = *invited, .certificate = {}, .serial = {}};
  if (used(*invited)) {
    // The machine that has used it did not hear the answer.
    const auto bearer = tls::bearer_of(invited->certificate());
    if (invited->wish_hash() != auth::secret_hash(message.wish()) || !bearer ||
        !check(*bearer, invited->node())) {
      return used_before();
    }
    out.certificate = invited->certificate();
    out.serial = bearer->serial;
    return out;
  }
  auto issued = authority_.issue_node(message.wish(), {invited->node()});
  if (!issued) return pass(std::move(issued.error()));
  out.token.set_wish_hash(auth::secret_hash(message.wish()));
  out.certificate = std::move(issued->certificate);
  out.serial = std::move(issued->serial);
  return out;
}

Result<bool> Identities::accept(const Offer& offer, const std::string& from, job::Time now) {
  if (used(offer.token)) return false;
  const auto token = tokens_.find(offer.token.id());
  if (token == tokens_.end() || used(token->second)) return used_before();
  const auto tokens = tokens_;
  const auto nodes = nodes_;
  token->second.set_wish_hash(offer.token.wish_hash());
  token->second.set_certificate(offer.certificate);
  token->second.set_expires(std::min<job::Time>(offer.token.expires(), now + kJoinTokenSeconds));
  wire::NodeIdentity& node = nodes_[offer.token.node()];
  node.set_node(offer.token.node());
  node.set_generation(node.generation() + 1);
  node.set_serial(offer.serial);
  node.clear_before();
  if (!from.empty()) node.set_address(from);
  if (auto saved = save(); !saved) {
    tokens_ = tokens;
    nodes_ = nodes;
    return pass(std::move(saved.error()));
  }
  return true;
}

Result<std::string> Identities::renew(const tls::Bearer& bearer, const std::string& wish) {
  for (const std::string& node : bearer.nodes) {
    if (auto good = check(bearer, node); !good) return pass(std::move(good.error()));
  }
  const auto issued = authority_.issue_node(wish, bearer.nodes);
  if (!issued) return pass(issued.error());
  const auto nodes = nodes_;
  for (const std::string& name : bearer.nodes) {
    wire::NodeIdentity& node = nodes_[name];
    node.set_before(bearer.serial);
    node.set_serial(issued->serial);
  }
  if (auto saved = save(); !saved) {
    nodes_ = nodes;
    return pass(std::move(saved.error()));
  }
  return issued->certificate;
}

Result<void> Identities::revoke(const std::vector<std::string>& names) {
  const auto nodes = nodes_;
  const auto tokens = tokens_;
  for (const std::string& name : names) {
    wire::NodeIdentity& node = nodes_[name];
    node.set_node(name);
    node.set_generation(node.generation() + 1);
    node.clear_serial();
    node.clear_before();
    std::erase_if(tokens_, [&](const auto& entry) { return entry.second.node() == name; });
  }
  if (auto saved = save(); !saved) {
    nodes_ = nodes;
    tokens_ = tokens;
    return saved;
  }
  return {};
}

Result<void> Identities::revoke_tokens(std::uint32_t uid) {
  const auto users = users_;
  ++users_[uid];
  if (auto saved = save(); !saved) {
    users_ = users;
    return saved;
  }
  return {};
}

Result<void> Identities::check(const tls::Bearer& bearer, const std::string& node) const {
  const bool named = std::ranges::find(bearer.nodes, node) != bearer.nodes.end();
  if (!named) {
    return fail(Code::access_denied,
                fmt::format("the certificate of this machine does not speak for node {}", node),
                fmt::format("it was made for {}; `scontrol token node={}` lets a machine join as "
                            "that node",
                            fmt::join(bearer.nodes, ","), node));
  }
  const auto found = nodes_.find(node);
  const bool good =
      found != nodes_.end() && !bearer.serial.empty() &&
      (bearer.serial == found->second.serial() || bearer.serial == found->second.before());
  if (good) return {};
  return std::unexpected(void_certificate(node));
}

std::unordered_set<std::string> Identities::serials() const {
  std::unordered_set<std::string> out;
  for (const auto& [name, node] : nodes_) {
    for (const std::string& serial : {node.serial(), node.before()}) {
      if (!serial.empty()) out.insert(serial);
    }
  }
  return out;
}

Result<bool> Identities::seen(const tls::Bearer& bearer) {
  bool changed = false;
  for (const std::string& name : bearer.nodes) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end() || found->second.serial() != bearer.serial) continue;
    changed |= !found->second.before().empty();
    found->second.clear_before();
  }
  if (!changed) return false;
  if (auto saved = save(); !saved) return pass(std::move(saved.error()));
  return true;
}

bool Identities::is_at(const tls::Bearer& bearer, const std::string& from) {
  if (from.empty()) return false;
  bool changed = false;
  for (const std::string& name : bearer.nodes) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end() || !check(bearer, name) || found->second.address() == from) continue;
    found->second.set_address(from);
    changed = true;
  }
  addresses_changed_ |= changed;
  return changed;
}

Result<void> Identities::keep_addresses() {
  if (!addresses_changed_) return {};
  addresses_changed_ = false;  // a write that fails is not tried again before the next change
  return save();
}

std::map<std::string, std::string> Identities::addresses() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, node] : nodes_) {
    if (!node.address().empty()) out[name] = node.address();
  }
  return out;
}

}  // namespace berth::controller
