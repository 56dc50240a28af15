#include "controller/tickets.h"

#include "auth/random.h"
#include "auth/ticket.h"

namespace berth::controller {

const std::string& Tickets::key_of(const std::string& node) {
  const auto found = keys_.find(node);
  if (found != keys_.end()) return found->second;
  return keys_.emplace(node, auth::node_key(cluster_key_, node)).first->second;
}

std::string Tickets::nonce() {
  return auth::random_bytes(16);
}

wire::Ticket Tickets::sign(wire::StepSpec spec, job::Time now) {
  spec.set_epoch(epoch_);
  spec.set_expires(now + kTicketSeconds);
  spec.set_nonce(nonce());
  return auth::sign_ticket(spec.node(), spec, key_of(spec.node()));
}

wire::Ticket Tickets::sign(wire::AccessSpec spec, job::Time now) {
  spec.set_expires(now + kTicketSeconds);
  return auth::sign_ticket(spec.node(), spec, key_of(spec.node()));
}

void Tickets::sign_again(wire::Ticket& ticket, const std::string& node) {
  ticket.set_node(node);
  ticket.set_mac(auth::sign(ticket.spec(), key_of(node)));
}

}  // namespace berth::controller
