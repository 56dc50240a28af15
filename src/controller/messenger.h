// What is to be done to connections, and whoever does it: the network side (front.h), or a
// rehearsal without a network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/caller.h"

namespace berth::controller {

/// Names a connection for ever: numbers are not used again.
using Peer = std::uint64_t;

/// What is to be done to a connection, or to some of them. `answered`: the request is done with,
/// the next one of this peer may come.
struct Act {
  Peer peer = 0;
  std::string bytes = {};
  bool answered = false;
  bool page = false;  // a part of the answer: page_taken is called when the next may come
  bool close = false;
  bool read_on = false;             // enough of what this agent has sent is handled
  bool keep = false;                // it is silent for long and matters; tell when it closes
  bool agent = false;               // it is an agent from now on
  std::optional<Caller> user = {};  // a node vouched for him: the connection is his from now on
  // Of no peer: all connections are closed that were opened with
  std::string close_node = {};                     // a certificate for this node
  std::optional<std::uint32_t> close_tokens = {};  // a token of this user
};

class Messenger {
 public:
  Messenger() = default;
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  virtual ~Messenger() = default;

  /// In order. Any thread may call it.
  virtual void act(std::vector<Act> acts) = 0;
};

}  // namespace berth::controller
