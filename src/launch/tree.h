// How the nodes of a large step are reached: a client talks to at most `width` agents; each of them
// launches its own node and passes the rest of its share on in the same way.
//
//   srun ─┬─ n0 ─┬─ n1        width 2, 7 nodes
//         │      └─ n2 ── n3
//         └─ n4 ─┬─ n5
//                └─ n6
#pragma once

#include <string>
#include <vector>

#include "net/address.h"
#include "tls/handover.h"
#include "wire/frame.h"

namespace berth::launch {

/// Neighbours of a list: [first, first + count).
struct Share {
  std::size_t first = 0;
  std::size_t count = 0;
  friend bool operator==(const Share&, const Share&) = default;
};

/// `count` things in at most `width` shares that differ by one at most; each its own when they are
/// not more than that, or width is 0.
std::vector<Share> divide(std::size_t count, std::size_t width);

/// How many connections, one after the other, what a client says to the farthest of so many nodes
/// passes.
std::size_t levels(std::size_t count, std::size_t width);

/// The TLS session that comes with a ticket.
tls::Session session_of(const wire::Ticket& ticket);
/// The ticket without it: what the node itself has to see.
wire::Ticket shown(const wire::Ticket& ticket);

/// One connection of a client or a relay.
struct Branch {
  Share nodes;  // of the plan; the first is the agent that is dialled
  net::Address address;
  std::string request;   // Launch for one node, Relay for several
  tls::Session session;  // with the agent that is dialled
};

/// srun's, and those of the relay that got the plan: its own node by itself, and the
/// shares of the others.
std::vector<Branch> client_branches(const wire::Relay& plan);
std::vector<Branch> relay_branches(const wire::Relay& plan);

}  // namespace berth::launch
