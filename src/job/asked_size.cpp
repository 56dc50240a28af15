#include "job/asked_size.h"

#include <algorithm>

namespace berth::job {
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

}  // namespace

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

std::vector<request::GresAsk> gres_asked(const AskedSize& size) {
  const request::Counts& counts = size.counts;
  std::vector<request::GresAsk> out;
  const auto add = [&](const std::vector<request::GresAsk>& asks, std::uint64_t times) {
    for (const request::GresAsk& ask : asks) {
      out.push_back({ask.name, ask.type, ask.count * times});
    }
  };
  if (!counts.per_job.empty()) {
    add(counts.per_job, 1);
  } else if (!counts.per_node.empty()) {
    add(counts.per_node, size.nodes);
  } else if (!counts.per_task.empty()) {
    add(counts.per_task, size.tasks);
  } else {
    add(counts.per_socket, std::uint64_t{counts.sockets_per_node.value_or(1)} * size.nodes);
  }
  return out;
}

}  // namespace berth::job
