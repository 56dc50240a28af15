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

  /// Which process on which machine.
  struct Origin {
    std::string instance;  // of the process; "" = an agent of an older berth
    std::string boot_id;   // of the machine; "" = not told
    std::string from;      // the address of its connection; "" = a unix socket
    wire::NodeAddress address;
    static Origin of(const wire::RegisterNodes& message, std::string from);
    /// "10.0.0.7 (h1:6818, boot 0c3f…)".
    [[nodiscard]] std::string text() const;
  };
  struct Agent {
    Origin origin;
    std::vector<std::string> nodes;
    std::vector<std::string> limits;  // what it cannot enforce, in words
    bool refused = false;             // some of its nodes were not in slurm.conf
    std::string certificate;          // its serial; "" = it came by a unix socket
    std::set<std::string> claims;     // nodes that it would serve if another agent did not
    Moment heard;
    bool silent = false;  // nothing has come for too long; its nodes do not respond
  };

  /// A connection registers as an agent, perhaps again.
  Agent& arrived(Peer peer, const wire::RegisterNodes& message, Origin origin, Moment now);
  /// Who serves the node now; nullopt when nobody does.
  [[nodiscard]] std::optional<Peer> serving(std::string_view node) const;
  /// The connection of another agent that serves the node; it goes on until it is silent for too
  /// long. nullopt also when it is the same agent, or its successor on the same machine, which
  /// comes back before its old connection was seen to be dead.
  [[nodiscard]] std::optional<Peer> served_elsewhere(std::string_view node, Peer peer,
                                                     const Origin& origin) const;
  /// Agents that would serve one of these nodes, which another one has left.
  [[nodiscard]] std::vector<Peer> claimants(const std::vector<std::string>& nodes) const;
  /// Other connections with the certificate of this one that serve no node: a machine has one
  /// connection that registers, and a copy of it one that waits for the other to end.
  [[nodiscard]] std::vector<Peer> idle_twins(Peer peer) const;
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

  /// The second one is the first one, or has taken its place on the same machine.
  [[nodiscard]] static bool succeeds(const Origin& first, const Origin& second);

 private:
  std::map<Peer, Agent> agents_;
  std::map<std::string, Peer, std::less<>> by_node_;
  std::map<std::string, wire::NodeAddress, std::less<>> last_address_;
};

}  // namespace berth::controller
