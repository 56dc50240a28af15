// What tree.h promises.
#include "launch/tree.h"

namespace berth::launch {
namespace {

std::string request_for(const wire::Relay& plan, const Share& share) {
  if (share.count == 1) {
    const wire::RelayNode& node = plan.nodes(static_cast<int>(share.first));
    wire::Launch launch;
    *launch.mutable_ticket() = shown(node.ticket());
    if (static_cast<int>(node.program()) < plan.programs_size()) {
      *launch.mutable_program() = plan.programs(static_cast<int>(node.program()));
    }
    return wire::framed(launch);
  }
  wire::Relay part;
  part.set_width(plan.width());
  *part.mutable_programs() = plan.programs();
  for (std::size_t i = 0; i < share.count; ++i) {
    *part.add_nodes() = plan.nodes(static_cast<int>(share.first + i));
  }
  return wire::framed(part);
}

Branch branch_for(const wire::Relay& plan, const Share& share) {
  const wire::RelayNode& first = plan.nodes(static_cast<int>(share.first));
  return {.nodes = share,
          .address = net::Address::from(first.address()),
          .request = request_for(plan, share),
          .session = session_of(first.ticket())};
}

void add_branches(std::vector<Branch>& out, const wire::Relay& plan, std::size_t from) {
  const auto count = static_cast<std::size_t>(plan.nodes_size());
  for (Share share : divide(count - from, plan.width())) {
    share.first += from;
    out.push_back(branch_for(plan, share));
  }
}

}  // namespace

tls::Session session_of(const wire::Ticket& ticket) {
  return {.name = ticket.session(), .key = ticket.session_key()};
}

wire::Ticket shown(const wire::Ticket& ticket) {
  wire::Ticket bare;
  bare.set_node(ticket.node());
  bare.set_spec(ticket.spec());
  bare.set_mac(ticket.mac());
  return bare;
}

std::vector<Share> divide(std::size_t count, std::size_t width) {
  const std::size_t shares = width == 0 || count <= width ? count : width;
  std::vector<Share> out;
  out.reserve(shares);
  std::size_t first = 0;
  for (std::size_t i = 0; i < shares; ++i) {
    const std::size_t size = count / shares + (i < count % shares ? 1 : 0);
    out.push_back({first, size});
    first += size;
  }
  return out;
}

std::size_t levels(std::size_t count, std::size_t width) {
  if (count == 0) return 0;
  // The largest share is the deepest; its relay launches one node itself and divides the others.
  const std::size_t share = divide(count, width).front().count;
  return share <= 1 ? 1 : 1 + levels(share - 1, width);
}

std::vector<Branch> client_branches(const wire::Relay& plan) {
  std::vector<Branch> out;
  add_branches(out, plan, 0);
  return out;
}

std::vector<Branch> relay_branches(const wire::Relay& plan) {
  std::vector<Branch> out;
  if (plan.nodes_size() == 0) return out;
  out.push_back(branch_for(plan, {0, 1}));
  add_branches(out, plan, 1);
  return out;
}

}  // namespace berth::launch
