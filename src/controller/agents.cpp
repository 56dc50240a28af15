#include "controller/agents.h"

#include <algorithm>
#include <utility>

namespace berth::controller {

Agents::Agent& Agents::arrived(Peer peer, const wire::RegisterNodes& message, Moment now) {
  Agent& agent = agents_[peer];
  agent.address = message.address();
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

bool Agents::served_elsewhere(std::string_view node, Peer peer,
                              const wire::NodeAddress& address) const {
  const auto other = serving(node);
  if (!other || *other == peer) return false;
  const wire::NodeAddress& known = find(*other)->address;
  return known.unix_path() != address.unix_path() || known.host() != address.host() ||
         known.port() != address.port();
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
  last_address_.insert_or_assign(node, agent->second.address);
}

std::vector<std::string> Agents::left(Peer peer) {
  const auto found = agents_.find(peer);
  if (found == agents_.end()) return {};
  std::vector<std::string> nodes = std::move(found->second.nodes);
  for (const std::string& node : nodes) {
    by_node_.erase(node);
    last_address_.insert_or_assign(node, found->second.address);
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
    if (const Agent* agent = find(*peer)) address = agent->address;
  } else if (const auto last = last_address_.find(node); last != last_address_.end()) {
    address = last->second;
  }
  address.set_node(std::string(node));
  return address;
}

}  // namespace berth::controller
