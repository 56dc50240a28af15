// Tickets: what the controller allows on a node, signed with that node's key, so that the agent
// needs no question back.
//
//   controller: auto key = auth::node_key(cluster_key, node);
//               wire::Ticket t = auth::sign_ticket(node, spec, key);       // spec: StepSpec or
//               AccessSpec
//   agent:      if (!auth::verify(ticket.spec(), ticket.mac(), key)) refuse;
//               auto spec = wire::decode<wire::StepSpec>(ticket.spec());   // then node, expiry,
//               uid …
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/submit.pb.h"

namespace berth::auth {

inline constexpr std::size_t kKeyBytes = 32;
inline constexpr std::size_t kMacBytes = 32;

/// HMAC-SHA256.
std::string hmac(std::string_view key, std::string_view text);
/// A node can check (and make) tickets for itself only. `generation` counts how often the node was
/// given a new identity: what an older one knows is worth nothing then.
std::string node_key(std::string_view cluster_key, std::string_view node,
                     std::uint64_t generation = 0);
/// The key of a TLS session with a node, which follows from its name (a serialized SessionName).
std::string session_key(std::string_view node_key, std::string_view name);
/// The mac of a spec under a node's key.
std::string sign(std::string_view spec, std::string_view key);
/// In constant time; false for an empty key.
bool verify(std::string_view spec, std::string_view mac, std::string_view key);

template <class Spec>
wire::Ticket sign_ticket(const std::string& node, const Spec& spec, std::string_view key) {
  wire::Ticket ticket;
  ticket.set_node(node);
  ticket.set_spec(spec.SerializeAsString());
  ticket.set_mac(sign(ticket.spec(), key));
  return ticket;
}

/// The cluster's key: read from `path`, or made there (0600, synced) when there is none. A file
/// that others may read, or of another size, is an error.
Result<std::string> load_or_create_cluster_key(const std::string& path);

}  // namespace berth::auth
