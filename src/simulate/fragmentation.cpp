#include "simulate/fragmentation.h"

#include <algorithm>

#include "text/words.h"

namespace berth::simulate {
namespace {

bool serves(const cluster::Node& node, const cluster::Gres& gpus, const Ask& ask) {
  if (ask.models.empty()) return true;
  return std::ranges::any_of(ask.models, [&](const std::string& model) {
    const auto same = [&](const std::string& name) {
      return text::equal_ignoring_case(name, model);
    };
    return std::ranges::any_of(gpus.devices, same, &cluster::Device::type) ||
           std::ranges::any_of(node.features, same);
  });
}

}  // namespace

Fragmentation::Fragmentation(const cluster::Cluster& cluster, const Trace& trace)
    : cluster_(&cluster) {
  std::vector<std::uint64_t> count(trace.asks.size());
  for (const TraceJob& job : trace.jobs) ++count[job.ask];
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (count[i] > 0 && trace.asks[i].devices() > 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return count[i]; });
  if (order.size() > kShapes) order.resize(kShapes);
  double total = 0;
  for (const std::size_t i : order) total += static_cast<double>(count[i]);
  for (const std::size_t i : order) {
    const Ask& ask = trace.asks[i];
    const std::uint64_t nodes = std::max(1U, ask.nodes);
    Shape shape;
    shape.cpus = (std::uint64_t{ask.cpus()} + nodes - 1) / nodes;
    shape.memory_mb =
        ask.memory_per_node_mb > 0 ? ask.memory_per_node_mb : ask.memory_per_cpu_mb * shape.cpus;
    shape.milli = ask.gpu_milli;
    shape.gpus = static_cast<std::uint32_t>((ask.gpus + nodes - 1) / nodes);
    shape.weight = static_cast<double>(count[i]) / total;
    shapes_.push_back(shape);
  }
  nodes_.resize(cluster.nodes.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const cluster::Node& node = cluster.nodes[n];
    NodeFacts& facts = nodes_[n];
    facts.cpus = static_cast<std::uint32_t>(node.cores() - node.reserved_cores.count()) *
                 node.threads_per_core;
    for (std::size_t g = 0; g < node.gres.size(); ++g) {
      if (node.gres[g].name == "gpu") facts.gpu = static_cast<int>(g);
      if (node.gres[g].name == "shard") facts.shard = static_cast<int>(g);
    }
    if (facts.gpu < 0) continue;
    const cluster::Gres& gpus = node.gres[static_cast<std::size_t>(facts.gpu)];
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (serves(node, gpus, trace.asks[order[i]])) facts.models |= std::uint64_t{1} << i;
    }
  }
}

Fragmentation::Sample Fragmentation::sample(const cluster::Usage& usage) const {
  Sample out;
  if (shapes_.empty()) return out;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const NodeFacts& facts = nodes_[n];
    const cluster::Node& node = cluster_->nodes[n];
    if (facts.gpu < 0 || !node.usable) continue;
    const cluster::NodeUsage& used = usage.at(static_cast<cluster::NodeIndex>(n));
    const auto gpu = static_cast<std::size_t>(facts.gpu);
    const auto shard = static_cast<std::size_t>(std::max(0, facts.shard));
    std::uint32_t whole = 0;  // GPUs that nobody has a part of
    double most = 0;          // the largest free part of one
    double free = 0;
    for (std::size_t d = 0; d < node.gres[gpu].devices.size(); ++d) {
      double part = 0;
      if (used.gres[gpu][d] == 0) {
        part = 1;
        if (facts.shard >= 0 && d < used.gres[shard].size()) {
          const auto units = static_cast<double>(node.gres[shard].devices[d].units);
          part -= static_cast<double>(used.gres[shard][d]) / units;
        }
      }
      whole += part == 1 ? 1 : 0;
      most = std::max(most, part);
      free += part;
    }
    if (free == 0) continue;
    out.free += free;
    const std::uint64_t cpus =
        facts.cpus -
        std::min<std::uint64_t>(facts.cpus, used.cores.count() * node.threads_per_core);
    const std::uint64_t memory =
        node.usable_memory_mb() - std::min(node.usable_memory_mb(), used.memory_mb);
    const bool shared = facts.shard >= 0;
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const Shape& shape = shapes_[i];
      const bool gpus_fit = shape.milli > 0 && shared ? most * 1000 >= shape.milli
                                                      : whole >= std::max(1U, shape.gpus);
      const bool fits = !used.closed && gpus_fit && cpus >= shape.cpus &&
                        memory >= shape.memory_mb && ((facts.models >> i) & 1U) != 0;
      if (!fits) out.stranded += free * shape.weight;
    }
  }
  return out;
}

}  // namespace berth::simulate
