#include "place/network_words.h"

#include <fmt/format.h>

#include "text/hostlist.h"

namespace berth::place {

using cluster::Topology;

std::string leaf_words(const cluster::Cluster& cluster, const cluster::Allocation& allocation) {
  const Topology& network = cluster.topology;
  if (network.flat()) return {};
  std::vector<cluster::NodeIndex> nodes;
  for (const cluster::NodeShare& share : allocation.nodes) nodes.push_back(share.node);
  const std::vector<cluster::UnitIndex> leaves = network.leaves_of(nodes);
  if (leaves.empty()) return {};
  std::vector<std::string> names;
  for (const cluster::UnitIndex leaf : leaves) names.push_back(network.units[leaf].name);
  return fmt::format("{} {} ({})", names.size() == 1 ? "one" : std::to_string(names.size()),
                     network.leaf_word(names.size()), text::compress_hostlist(names));
}

std::string switch_wait_words(const cluster::Cluster& cluster, const request::Request& request,
                              const cluster::Allocation& allocation) {
  if (!request.switches) return {};
  return fmt::format("what is free is on {}; --switches={} waits for {}",
                     leaf_words(cluster, allocation), request.switches->count,
                     request.switches->count == 1 ? "one" : "so few");
}

std::vector<Message> network_warnings(const cluster::Cluster& cluster,
                                      const request::Request& request) {
  if (!request.contiguous || cluster.topology.flat()) return {};
  return {{Severity::warning,
           "--contiguous is for flat networks: here the switches say which nodes are near"}};
}

std::string network_hint(const cluster::Cluster& cluster, const request::Request& request) {
  const Topology& network = cluster.topology;
  if (network.flat()) return {};
  const std::string_view blocks = network.leaf_word(2);
  if (request.segment) {
    return fmt::format("--segment={} needs {} with as many nodes that could take the job",
                       *request.segment, blocks);
  }
  if (network.kind == cluster::NetworkKind::block) {
    return fmt::format(
        "a job of up to {} nodes stays within one block; --segment=n lets it be in "
        "several, n nodes in each",
        network.block_sizes.front());
  }
  return "its nodes must hang on one tree of switches (scontrol show topology)";
}

}  // namespace berth::place
