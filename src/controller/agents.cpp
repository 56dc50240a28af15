#include "controller/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace berth::controller {

Agents::Origin Agents::Origin::of(const wire::RegisterNodes& message, std::string from) {
  // Without the moment when a pretended node was switched on.
  const std::string boot = message.nodes_size() > 0 ? message.nodes(0).boot_id() : std::string();
  wire::NodeAddress address = message.address();
  // A path of another machine is none here: whoever listens there is not that node.
  if (!from.empty()) address.clear_unix_path();
  return {.instance = message.instance(),
          .boot_id = boot.substr(0, boot.find(' ')),
          .from = std::move(from),
          .address = std::move(address)};
}

std::string Agents::Origin::text() const {
  std::string out = address.unix_path().empty()
                        ? fmt::format("{} ({}:{}", from, address.host(), address.port())
                        : address.unix_path();
  if (address.unix_path().empty()) {
    if (!boot_id.empty()) out += ", boot " + boot_id;
    out += ")";
  }
  return out;
}

bool Agents::succeeds(const Origin& first, const Origin& second) {
  if (first.from != second.from || first.address.unix_path() != second.address.unix_path() ||
      first.address.host() != second.address.host() ||
      first.address.port() != second.address.port()) {
    return false;
  }
  if (!first.instance.empty() && first.instance == second.instance) return true;
  // Two agents cannot have one socket on one machine: the first has ended. Another machine may
  // have the same address, behind a router or because its image was copied.
  return first.boot_id.empty() || second.boot_id.empty() || first.boot_id == second.boot_id;
}

Agents::Agent& Agents::arrived(Peer peer, const wire::RegisterNodes& message, Origin origin,
                               Moment now) {
  Agent& agent = agents_[peer];
  agent.origin = std::move(origin);
  agent.claims.clear();
  agent.limits.assign(message.limits().begin(), message.limits().end());
  agent.refused = false;
  agent.heard = now;
  agent.silent = false;
  return agent;
}

std::optional<Peer> Agents::serving(std::string_view node) const {
  const auto found = by_node_.find(node);
  if (found == by_node_.end()) return std::nullopt;
  return found->second;
}

std::optional<Peer> Agents::served_elsewhere(std::string_view node, Peer peer,
                                             const Origin& origin) const {
  const auto other = serving(node);
  if (!other || *other == peer || succeeds(find(*other)->origin, origin)) return std::nullopt;
  return other;
}

std::vector<Peer> Agents::claimants(const std::vector<std::string>& nodes) const {
  std::vector<Peer> out;
  for (const auto& [peer, agent] : agents_) {
    const auto claimed = [&](const std::string& node) { return agent.claims.contains(node); };
    if (std::ranges::any_of(nodes, claimed)) out.push_back(peer);
  }
  return out;
}

std::vector<Peer> Agents::idle_twins(Peer peer) const {
  std::vector<Peer> out;
  const Agent* own = find(peer);
  if (own == nullptr || own->certificate.empty()) return out;
  for (const auto& [other, agent] : agents_) {
    if (other != peer && agent.nodes.empty() && agent.certificate == own->certificate) {
      out.push_back(other);
    }
  }
  return out;
}

void Agents::serve(Peer peer, const std::string& node) {
  const auto [entry, added] = by_node_.try_emplace(node, peer);
  if (!added && entry->second != peer) {
    const auto old = agents_.find(entry->second);
    if (old != agents_.end()) std::erase(old->second.nodes, node);
    entry->second = peer;
  }
  std::vector<std::string>& nodes = agents_[peer].nodes;
  if (added || std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
}

void Agents::no_longer(Peer peer, const std::string& node) {
  const auto agent = agents_.find(peer);
  if (agent == agents_.end() || serving(node) != peer) return;
  std::erase(agent->second.nodes, node);
  by_node_.erase(node);
  last_address_.insert_or_assign(node, agent->second.origin.address);
}

std::vector<std::string> Agents::left(Peer peer) {
  const auto found = agents_.find(peer);
  if (found == agents_.end()) return {};
  std::vector<std::string> nodes = std::move(found->second.nodes);
  for (const std::string& node : nodes) {
    by_node_.erase(node);
    last_address_.insert_or_assign(node, found->second.origin.address);
  }
  agents_.erase(found);
  return nodes;
}

const Agents::Agent* Agents::find(Peer peer) const {
  const auto found = agents_.find(peer);
  return found == agents_.end() ? nullptr : &found->second;
}

bool Agents::heard(Peer peer, Moment now) {
  const auto found = agents_.find(peer);
  if (found == agents_.end()) return false;
  found->second.heard = now;
  return std::exchange(found->second.silent, false);
}

void Agents::all_heard(Moment now) {
  for (auto& [peer, agent] : agents_) agent.heard = now;
}

std::vector<Peer> Agents::fall_silent(Moment limit) {
  std::vector<Peer> peers;
  for (auto& [peer, agent] : agents_) {
    if (agent.silent || agent.heard > limit) continue;
    agent.silent = true;
    peers.push_back(peer);
  }
  return peers;
}

std::vector<Peer> Agents::silent_since(Moment limit) const {
  std::vector<Peer> peers;
  for (const auto& [peer, agent] : agents_) {
    if (agent.heard <= limit) peers.push_back(peer);
  }
  return peers;
}

std::optional<Agents::Moment> Agents::longest_ago(bool silent) const {
  std::optional<Moment> first;
  for (const auto& [peer, agent] : agents_) {
    if (agent.silent == silent && (!first || agent.heard < *first)) first = agent.heard;
  }
  return first;
}

std::vector<Peer> Agents::all() const {
  std::vector<Peer> peers;
  for (const auto& [peer, agent] : agents_) peers.push_back(peer);
  return peers;
}

std::vector<Peer> Agents::speaking() const {
  std::vector<Peer> peers;
  for (const auto& [peer, agent] : agents_) {
    if (!agent.silent) peers.push_back(peer);
  }
  return peers;
}

std::set<std::string> Agents::limits() const {
  std::set<std::string> all;
  for (const auto& [peer, agent] : agents_) all.insert(agent.limits.begin(), agent.limits.end());
  return all;
}

wire::NodeAddress Agents::address_of(std::string_view node) const {
  wire::NodeAddress address;
  if (const auto peer = serving(node)) {
    if (const Agent* agent = find(*peer)) address = agent->origin.address;
  } else if (const auto last = last_address_.find(node); last != last_address_.end()) {
    address = last->second;
  }
  address.set_node(std::string(node));
  return address;
}

}  // namespace berth::controller
