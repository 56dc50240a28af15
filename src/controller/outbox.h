// What the state thread wants sent, gathered during a turn and handed to the network thread at
// once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "controller/messenger.h"
#include "wire/frame.h"

namespace berth::controller {

class Outbox {
 public:
  /// Something the peer did not ask for just now.
  template <class M>
  void push(Peer peer, const M& message) {
    acts_.push_back({.peer = peer, .bytes = wire::framed(message)});
  }
  /// The answer to its request.
  template <class M>
  void answer(Peer peer, const M& message) {
    acts_.push_back({.peer = peer, .bytes = wire::framed(message), .answered = true});
  }
  /// Its request is done with, without an answer (it comes later).
  void taken(Peer peer) { acts_.push_back({.peer = peer, .answered = true}); }
  void keep(Peer peer) { acts_.push_back({.peer = peer, .keep = true}); }
  void make_agent(Peer peer) { acts_.push_back({.peer = peer, .answered = true, .agent = true}); }
  /// A node vouched for the user at the other end.
  void introduce(Peer peer, const Caller& user) {
    acts_.push_back({.peer = peer, .answered = true, .user = user});
  }
  void close(Peer peer) { acts_.push_back({.peer = peer, .close = true}); }
  /// All that was opened with a certificate for this node, also by users it vouched for.
  void close_all_of(const std::string& node) { acts_.push_back({.close_node = node}); }
  void close_tokens_of(std::uint32_t uid) { acts_.push_back({.close_tokens = uid}); }

  std::vector<Act> take() { return std::exchange(acts_, {}); }

 private:
  std::vector<Act> acts_;
};

}  // namespace berth::controller
