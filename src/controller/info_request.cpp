#include "controller/info_request.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::controller {
namespace {

std::optional<request::Memory> default_memory(const cluster::Cluster& cluster,
                                              const cluster::Partition* partition) {
  using request::MemoryPer;
  if (partition != nullptr) {
    if (partition->def_mem_per_cpu_mb) return {{MemoryPer::cpu, *partition->def_mem_per_cpu_mb}};
    if (partition->def_mem_per_node_mb) return {{MemoryPer::node, *partition->def_mem_per_node_mb}};
  }
  const cluster::Settings& settings = cluster.settings;
  if (settings.def_mem_per_cpu_mb) return {{MemoryPer::cpu, *settings.def_mem_per_cpu_mb}};
  if (settings.def_mem_per_node_mb) return {{MemoryPer::node, *settings.def_mem_per_node_mb}};
  return std::nullopt;
}

/// Memory of a node of the partition, for jobs that take all of it.
std::uint64_t whole_node_mb(const cluster::Cluster& cluster, const cluster::Partition* partition) {
  if (!cluster.settings.memory_is_consumed) return 0;
  if (partition != nullptr && !partition->nodes.empty()) {
    return cluster.nodes[partition->nodes.front()].usable_memory_mb();
  }
  return cluster.nodes.empty() ? 0 : cluster.nodes.front().usable_memory_mb();
}

std::uint64_t gpus_of(const request::Counts& counts, const AskedSize& size) {
  std::uint64_t gpus = request::total_of(counts.per_job, "gpu");
  gpus = std::max(gpus, request::total_of(counts.per_node, "gpu") * size.nodes);
  gpus = std::max(gpus, request::total_of(counts.per_task, "gpu") * size.tasks);
  return std::max(gpus, request::total_of(counts.per_socket, "gpu") *
                            counts.sockets_per_node.value_or(1) * size.nodes);
}

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

AskedSize asked_size(const cluster::Cluster& cluster, const request::Request& request,
                     const cluster::Partition* partition) {
  AskedSize size;
  if (Result<request::Counts> counts = request::derive_counts(request)) {
    size.counts = std::move(*counts);
  }
  const request::Counts& counts = size.counts;
  size.nodes = std::max(1U, counts.min_nodes);
  if (!request.nodes && !request.ntasks) {
    std::vector<std::string> named = request.nodelist;
    std::ranges::sort(named);
    const auto repeated = std::ranges::unique(named);
    named.erase(repeated.begin(), repeated.end());
    size.nodes = std::max(size.nodes, static_cast<std::uint32_t>(named.size()));
  }
  const bool fixed_nodes = !request.nodes || request.nodes->min == request.nodes->max;
  size.tasks_given = counts.tasks_explicit;
  size.tasks = counts.tasks.value_or(fixed_nodes ? size.nodes : 1);
  size.cpus_per_task = counts.cpus_per_task.value_or(1);
  size.cpus = std::uint64_t{size.tasks} * size.cpus_per_task;
  const std::uint64_t gpus = gpus_of(counts, size);
  if (request.cpus_per_gpu) size.cpus = std::max(size.cpus, gpus * *request.cpus_per_gpu);
  size.min_cpus_node = std::max(request.mincpus.value_or(1),
                                size.cpus_per_task * counts.ntasks_per_node.value_or(1));

  size.memory = request.memory ? request.memory : default_memory(cluster, partition);
  const std::uint64_t whole = whole_node_mb(cluster, partition) * size.nodes;
  if (!size.memory || size.memory->mb == 0) {
    size.memory_mb = whole;
  } else if (size.memory->per == request::MemoryPer::node) {
    size.memory_mb = size.memory->mb * size.nodes;
  } else if (size.memory->per == request::MemoryPer::cpu) {
    size.memory_mb = size.memory->mb * size.cpus;
  } else {
    size.memory_mb = size.memory->mb * gpus;
  }
  return size;
}

TresCounts counts_of(const AskedSize& size) {
  TresCounts out;
  out.cpus = size.cpus;
  out.memory_mb = size.memory_mb;
  out.nodes = size.nodes;
  out.billing = true;
  const auto add = [&](const std::vector<request::GresAsk>& asks, std::uint64_t times) {
    for (const request::GresAsk& ask : asks)
      out.gres.push_back({ask.name, ask.type, ask.count * times});
  };
  if (!size.counts.per_job.empty()) {
    add(size.counts.per_job, 1);
  } else if (!size.counts.per_node.empty()) {
    add(size.counts.per_node, size.nodes);
  } else if (!size.counts.per_task.empty()) {
    add(size.counts.per_task, size.tasks);
  } else {
    add(size.counts.per_socket,
        std::uint64_t{size.counts.sockets_per_node.value_or(1)} * size.nodes);
  }
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
