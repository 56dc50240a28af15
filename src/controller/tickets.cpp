#include "controller/tickets.h"

#include "auth/random.h"
#include "auth/ticket.h"

namespace berth::controller {

const std::string& Tickets::key_of(const std::string& node) {
  const auto found = keys_.find(node);
  if (found != keys_.end()) return found->second;
  return keys_.emplace(node, auth::node_key(cluster_key_, node)).first->second;
}

void Tickets::set_generation(const std::string& node, std::uint64_t generation) {
  keys_[node] = auth::node_key(cluster_key_, node, generation);
}

void Tickets::add_session(wire::Ticket& ticket, std::uint32_t uid, std::uint32_t gid,
                          job::Time expires) {
  wire::SessionName name;
  name.set_node(ticket.node());
  name.set_uid(uid);
  name.set_gid(gid);
  name.set_expires(expires);
  name.set_nonce(nonce());
  ticket.set_session(name.SerializeAsString());
  ticket.set_session_key(auth::session_key(key_of(ticket.node()), ticket.session()));
}

std::string Tickets::nonce() {
  return auth::random_bytes(16);
}

wire::Ticket Tickets::sign(wire::StepSpec spec, job::Time now) {
  spec.set_epoch(epoch_);
  spec.set_expires(now + kTicketSeconds);
  spec.set_nonce(nonce());
  wire::Ticket ticket;
  ticket.set_spec(spec.SerializeAsString());
  sign_step(ticket, spec.node());
  add_session(ticket, spec.uid(), spec.gid(), spec.expires());
  return ticket;
}

bool Tickets::sealed(std::string_view spec) const {
  if (spec.size() < auth::kMacBytes) return false;
  wire::StepSpec seal;
  seal.set_seal(std::string(spec.substr(spec.size() - auth::kMacBytes)));
  const std::string end = seal.SerializeAsString();
  if (!spec.ends_with(end)) return false;
  return auth::verify(spec.substr(0, spec.size() - end.size()), seal.seal(), seal_key_);
}

wire::Ticket Tickets::sign(wire::AccessSpec spec, job::Time now) {
  spec.set_expires(now + kTicketSeconds);
  wire::Ticket ticket = auth::sign_ticket(spec.node(), spec, key_of(spec.node()));
  add_session(ticket, spec.uid(), spec.gid(), spec.expires());
  return ticket;
}

void Tickets::sign_step(wire::Ticket& ticket, const std::string& node) {
  ticket.set_node(node);
  wire::StepSpec seal;  // the fields of a message may come in pieces
  seal.set_seal(auth::sign(ticket.spec(), seal_key_));
  seal.AppendToString(ticket.mutable_spec());
  ticket.set_mac(auth::sign(ticket.spec(), key_of(node)));
}

}  // namespace berth::controller
