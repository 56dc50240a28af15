// Which agent serves which node, and how clients reach it. One connection may serve many nodes. Of
// the state thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controller/front.h"
#include "wire/agent.pb.h"

namespace berth::controller {

class Agents {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  struct Agent {
    wire::NodeAddress address;
    std::vector<std::string> nodes;
    std::vector<std::string> limits;  // what it cannot enforce, in words
    bool refused = false;             // some of its nodes were not in slurm.conf
    Moment heard;
    bool silent = false;  // nothing has come for too long; its nodes do not respond
  };

  /// A connection registers as an agent, perhaps again.
  Agent& arrived(Peer peer, const wire::RegisterNodes& message, Moment now);
  /// Who serves the node now; nullopt when nobody does.
  [[nodiscard]] std::optional<Peer> serving(std::string_view node) const;
  /// Another agent serves the node. One at the same address is the same agent, which comes back
  /// before its old connection was seen to be dead.
  [[nodiscard]] bool served_elsewhere(std::string_view node, Peer peer,
                                      const wire::NodeAddress& address) const;
  /// The node is served by this connection from now on.
  void serve(Peer peer, const std::string& node);
  /// This connection has registered without the node: nobody serves it.
  void no_longer(Peer peer, const std::string& node);
  /// True when this connection may speak for the node.
  [[nodiscard]] bool speaks_for(Peer peer, std::string_view node) const {
    return serving(node) == peer;
  }
  /// The connection is gone; returns the nodes it served.
  std::vector<std::string> left(Peer peer);

  [[nodiscard]] const Agent* find(Peer peer) const;
  /// True when it had been silent.
  bool heard(Peer peer, Moment now);
  /// Nobody could be heard until now.
  void all_heard(Moment now);
  /// Agents that have said nothing since `limit`, and are silent from now on.
  std::vector<Peer> fall_silent(Moment limit);
  [[nodiscard]] std::vector<Peer> silent_since(Moment limit) const;
  /// When the silent ones, or the others, were heard that have said nothing for longest.
  [[nodiscard]] std::optional<Moment> longest_ago(bool silent) const;
  [[nodiscard]] std::vector<Peer> all() const;
  /// Those that are not silent.
  [[nodiscard]] std::vector<Peer> speaking() const;
  [[nodiscard]] std::size_t count() const { return agents_.size(); }
  /// What agents cannot enforce, each once.
  [[nodiscard]] std::set<std::string> limits() const;
  /// Of an agent that is away it is the last one: whoever was granted a step in that moment dials
  /// until it is back.
  [[nodiscard]] wire::NodeAddress address_of(std::string_view node) const;

 private:
  std::map<Peer, Agent> agents_;
  std::map<std::string, Peer, std::less<>> by_node_;
  std::map<std::string, wire::NodeAddress, std::less<>> last_address_;
};

}  // namespace berth::controller
