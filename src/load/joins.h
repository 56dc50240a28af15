// Certificates for many nodes, as `berth join` gets them one by one.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "net/address.h"
#include "tls/context.h"

namespace berth::load {

struct Joined {
  net::Address controller;               // for nodes
  std::vector<tls::Context> identities;  // one for each node, in their order
};

/// Asks the controller for a token for each of the nodes n1 … n`count`, and joins with each.
Result<Joined> join_all(const net::Address& controller, std::size_t count);

}  // namespace berth::load
