#include "controller/info_request.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::controller {
namespace {

/// The fewest sockets of a node that have so many GPUs near them; 0 when it has not so many.
std::uint32_t sockets_with(const cluster::Node& node, std::uint64_t gpus) {
  const cluster::Gres* gres = node.find_gres("gpu");
  if (gres == nullptr || gres->devices.size() < gpus) return 0;
  std::vector<std::uint64_t> near(node.sockets);
  for (const cluster::Device& device : gres->devices) {
    const std::size_t socket = device.sockets.next();
    if (socket < near.size()) ++near[socket];
  }
  std::ranges::sort(near, std::ranges::greater{});
  std::uint32_t sockets = 0;
  for (std::uint64_t held = 0; held < gpus && sockets < near.size(); ++sockets) {
    held += near[sockets];
  }
  return sockets;
}

}  // namespace

std::uint64_t cpus_tried(const cluster::Cluster& cluster, const request::Request& request,
                         const cluster::Partition* partition, const AskedSize& size) {
  const std::uint64_t gpus = request::total_of(size.counts.per_node, "gpu");
  if (!request.gres_flags.enforce_binding || gpus == 0 || partition == nullptr) return size.cpus;
  std::uint32_t fewest = 0;
  for (const cluster::NodeIndex index : partition->nodes) {
    const cluster::Node& node = cluster.nodes[index];
    if (!request.nodelist.empty() &&
        std::ranges::find(request.nodelist, node.name) == request.nodelist.end()) {
      continue;
    }
    const std::uint32_t sockets = sockets_with(node, gpus);
    if (sockets > 0 && (fewest == 0 || sockets < fewest)) fewest = sockets;
  }
  return std::max<std::uint64_t>(size.cpus, std::uint64_t{fewest} * size.nodes);
}

std::uint32_t nodes_tried(const AskedSize& size) {
  const std::uint32_t on_each = size.counts.ntasks_per_node.value_or(0);
  if (on_each == 0 || !size.tasks_given) return size.nodes;
  return std::max(size.nodes, size.tasks / on_each + (size.tasks % on_each != 0 ? 1 : 0));
}

TresCounts counts_of(const AskedSize& size) {
  TresCounts out;
  out.cpus = size.cpus;
  out.memory_mb = size.memory_mb;
  out.nodes = size.nodes;
  out.billing = true;
  out.gres = job::gres_asked(size);
  return out;
}

std::string gres_ask_words(const std::vector<request::GresAsk>& asks) {
  std::string out;
  for (const request::GresAsk& ask : asks) {
    if (!out.empty()) out += ',';
    out += "gres/" + ask.name + ':';
    if (!ask.type.empty()) out += ask.type + ':';
    // A count below zero is shown as it was written.
    out += ask.count > INT32_MAX && ask.count <= UINT32_MAX
               ? std::to_string(static_cast<std::int32_t>(ask.count))
               : std::to_string(ask.count);
  }
  return out;
}

}  // namespace berth::controller
