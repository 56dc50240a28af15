// The network as `scontrol show topology` prints it.
#include "controller/info_config.h"
#include "text/hostlist.h"

namespace berth::controller {

void put_network(wire::ConfigReply& reply, const cluster::Cluster& cluster) {
  const cluster::Topology& network = cluster.topology;
  if (network.flat()) return;
  wire::Network& out = *reply.mutable_network();
  out.set_name(network.name);
  out.set_blocks(network.kind == cluster::NetworkKind::block);
  for (const cluster::NetworkUnit& unit : network.units) {
    wire::NetworkUnit& to = *out.add_units();
    to.set_name(unit.name);
    to.set_level(unit.level);
    to.set_link_speed(unit.link_speed);
    std::vector<std::string> names;
    for (const cluster::NodeIndex node : unit.nodes) names.push_back(cluster.nodes[node].name);
    to.set_nodes(text::compress_hostlist(names));
    names.clear();
    for (const cluster::UnitIndex child : unit.children) {
      names.push_back(network.units[child].name);
    }
    to.set_children(text::compress_hostlist(names));
    if (unit.level < network.block_sizes.size()) to.set_size(network.block_sizes[unit.level]);
  }
}

}  // namespace berth::controller
