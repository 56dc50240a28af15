#include "place/ask.h"

#include <algorithm>

#include "cluster/usage.h"

namespace berth::place {
namespace {

using request::GresAsk;
using request::Memory;
using request::MemoryPer;

/// The value of the partition, else of the cluster.
template <class T>
std::optional<T> first_set(const std::optional<T>& a, const std::optional<T>& b) {
  return a ? a : b;
}

std::vector<DeviceAsk> merge_devices(const request::Counts& counts) {
  std::vector<DeviceAsk> out;
  const auto add = [&](const std::vector<GresAsk>& asks, std::uint64_t DeviceAsk::* field) {
    for (const GresAsk& ask : asks) {
      if (ask.count == 0) continue;
      auto at = std::ranges::find_if(
          out, [&](const DeviceAsk& d) { return d.name == ask.name && d.type == ask.type; });
      if (at == out.end()) at = out.insert(out.end(), DeviceAsk{ask.name, ask.type});
      (*at).*field += ask.count;
    }
  };
  add(counts.per_socket, &DeviceAsk::per_socket);
  add(counts.per_node, &DeviceAsk::per_node);
  add(counts.per_task, &DeviceAsk::per_task);
  add(counts.per_job, &DeviceAsk::per_job);
  return out;
}

std::optional<Memory> memory_ask(const cluster::Settings& settings,
                                 const cluster::Partition& partition,
                                 const request::Request& request, bool wants_gpu) {
  if (request.memory) {
    if (request.memory->mb == 0) return std::nullopt;  // 0 = all of the node
    return request.memory;
  }
  const auto per_gpu = first_set(partition.def_mem_per_gpu_mb, settings.def_mem_per_gpu_mb);
  if (wants_gpu && per_gpu && *per_gpu > 0) return Memory{MemoryPer::gpu, *per_gpu};
  if (partition.def_mem_per_cpu_mb.value_or(0) > 0) {
    return Memory{MemoryPer::cpu, *partition.def_mem_per_cpu_mb};
  }
  if (partition.def_mem_per_node_mb.value_or(0) > 0) {
    return Memory{MemoryPer::node, *partition.def_mem_per_node_mb};
  }
  if (settings.def_mem_per_cpu_mb.value_or(0) > 0) {
    return Memory{MemoryPer::cpu, *settings.def_mem_per_cpu_mb};
  }
  if (settings.def_mem_per_node_mb.value_or(0) > 0) {
    return Memory{MemoryPer::node, *settings.def_mem_per_node_mb};
  }
  return std::nullopt;
}

/// --mem-per-cpu above MaxMemPerCPU becomes more CPUs for each task with less memory each.
void apply_max_mem_per_cpu(Ask& ask, std::optional<std::uint64_t> max_mb) {
  if (!max_mb || *max_mb == 0 || !ask.memory || ask.memory->per != MemoryPer::cpu) return;
  if (ask.memory->mb <= *max_mb) return;
  const std::uint64_t factor = (ask.memory->mb + *max_mb - 1) / *max_mb;
  ask.cpus_per_task = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(ask.cpus_per_task * factor, 0xFFFFFFFFULL));
  ask.memory->mb = (ask.memory->mb + factor - 1) / factor;
}

/// DefCpuPerGPU counts only where neither -c nor --cpus-per-gpu says otherwise.
void apply_cpus_per_gpu(Ask& ask, const request::Request& request,
                        std::optional<std::uint32_t> def_cpu_per_gpu) {
  ask.cpus_per_gpu = request.cpus_per_gpu;
  if (ask.cpus_per_gpu || request.cpus_per_task || !def_cpu_per_gpu || !ask.wants_gpu()) return;
  std::uint64_t per_task = 0;
  for (const DeviceAsk& device : ask.devices) {
    if (device.is_gpu()) per_task += device.per_task;
  }
  if (per_task > 0) {
    ask.cpus_per_task =
        std::max(ask.cpus_per_task, static_cast<std::uint32_t>(per_task * *def_cpu_per_gpu));
  } else {
    ask.cpus_per_gpu = def_cpu_per_gpu;
  }
}

std::uint64_t total_cpus(const Ask& ask, const request::Request& request) {
  if (ask.overcommit) return ask.min_nodes;
  std::uint64_t tasks = 1;
  if (ask.tasks) {
    tasks = *ask.tasks;
  } else if (!request.nodes || !request.nodes->range) {
    tasks = ask.min_nodes;
  }
  std::uint64_t cpus = tasks * ask.cpus_per_task;
  if (ask.cpus_per_gpu) {
    std::uint64_t gpus = 0;
    for (const DeviceAsk& device : ask.devices) {
      if (!device.is_gpu()) continue;
      gpus += device.per_job > 0 ? device.per_job : device.per_node * ask.min_nodes;
    }
    cpus = std::max(cpus, gpus * *ask.cpus_per_gpu);
  }
  return cpus;
}

std::uint32_t min_cpus_per_node(const Ask& ask, const request::Request& request) {
  std::uint64_t cpus = std::max({std::uint64_t{1}, std::uint64_t{request.mincpus.value_or(1)},
                                 std::uint64_t{ask.cpus_per_task}});
  if (ask.per_node_tasks && ask.tasks.value_or(2) > 1 && !ask.overcommit) {
    cpus = std::max(cpus, std::uint64_t{*ask.per_node_tasks} * ask.cpus_per_task);
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(cpus, 0xFFFFFFFFULL));
}

/// MinNodes and MaxNodes of the partition bound every job; what contradicts them is held (job.cpp).
void bound_nodes(Ask& ask, const cluster::Partition& partition) {
  if (partition.max_nodes && ask.min_nodes <= *partition.max_nodes) {
    ask.max_nodes = std::min(ask.max_nodes.value_or(*partition.max_nodes), *partition.max_nodes);
  }
  if (partition.min_nodes > ask.min_nodes &&
      ask.max_nodes.value_or(partition.min_nodes) >= partition.min_nodes) {
    ask.min_nodes = partition.min_nodes;
  }
  ask.desired_nodes = std::max(ask.desired_nodes, ask.min_nodes);
  if (ask.max_nodes) ask.desired_nodes = std::min(ask.desired_nodes, *ask.max_nodes);
}

}  // namespace

bool Ask::wants_gpu() const {
  return std::ranges::any_of(devices, &DeviceAsk::is_gpu);
}

std::uint32_t Ask::usable_threads(const cluster::Node& node) const {
  std::uint32_t threads = node.threads_per_core;
  if (threads_per_core) threads = std::min(threads, *threads_per_core);
  if (per_core_tasks) threads = std::min(threads, *per_core_tasks * cpus_per_task);
  return std::max<std::uint32_t>(threads, 1);
}

std::uint32_t Ask::cores_for(const cluster::Node& node, std::uint32_t node_tasks,
                             std::uint32_t cpus) const {
  const std::uint32_t threads = usable_threads(node);
  if (per_core_tasks == 1U && cpus_per_task > threads) {  // a core is not shared between tasks
    return node_tasks * ((cpus_per_task + threads - 1) / threads);
  }
  return (cpus + threads - 1) / threads;
}

std::uint64_t Ask::memory_on(std::uint64_t node_mb, std::uint64_t cpus, std::uint64_t gpus) const {
  if (!memory_counts) return 0;
  if (!memory) return node_mb;
  switch (memory->per) {
    case MemoryPer::node:
      return memory->mb;
    case MemoryPer::cpu:
      return memory->mb * cpus;
    case MemoryPer::gpu:
      return memory->mb * gpus;
  }
  return 0;
}

Ask make_ask(const cluster::Cluster& cluster, const cluster::Partition& partition,
             const request::Request& request, const request::Counts& counts) {
  const cluster::Settings& settings = cluster.settings;
  Ask ask;
  ask.tasks = counts.tasks;
  ask.cpus_per_task = std::max<std::uint32_t>(counts.cpus_per_task.value_or(1), 1);
  ask.overcommit = request.overcommit;
  if (!ask.overcommit) {  // limits per node, socket and core do not hold under -O
    ask.per_node_tasks = counts.ntasks_per_node;
    ask.per_socket_tasks = counts.ntasks_per_socket;
    ask.per_core_tasks = request.ntasks_per_core;
    // These say "one task a core" in other words.
    const bool one_a_core = request.hint == request::Hint::compute_bound ||
                            request.hint == request::Hint::memory_bound ||
                            settings.one_task_per_core;
    if (one_a_core && !ask.per_core_tasks && !request.threads_per_core) ask.per_core_tasks = 1;
  }
  ask.per_gpu_tasks = request.ntasks_per_gpu;
  ask.threads_per_core = request.threads_per_core;
  ask.sockets_per_node = counts.sockets_per_node;
  ask.cores_per_socket = request.cores_per_socket;
  ask.min_nodes = counts.min_nodes;
  ask.max_nodes = counts.max_nodes;
  ask.desired_nodes = counts.desired_nodes;
  ask.nodes_range = request.nodes && request.nodes->range;
  ask.sizes = counts.sizes;
  bound_nodes(ask, partition);
  ask.devices = merge_devices(counts);
  for (DeviceAsk& want : ask.devices) {
    if (want.is_gpu() || want.shares_gpu()) {
      want.least_memory_mb = request.gpu_mem_min_mb.value_or(0);
    }
  }
  using request::Exclusive;
  ask.alone = request.exclusive == Exclusive::user || request.exclusive == Exclusive::mcs;
  ask.exclusive = (request.exclusive != Exclusive::no && !ask.alone) || partition.exclusive_nodes;
  // Neighbours by number mean nothing in a network that says itself who is near.
  ask.contiguous = request.contiguous && cluster.topology.flat();
  ask.asks_network = request.switches || request.segment;
  ask.segment = request.segment.value_or(0);
  ask.spread_segments = request.spread_segments;
  ask.spread = request.spread_job;
  ask.enforce_binding = request.gres_flags.enforce_binding ||
                        (settings.enforce_binding_gres && !request.gres_flags.disable_binding);
  ask.multiple_sharing = settings.multiple_sharing_gres;
  ask.least_loaded_shares = settings.least_loaded_shares;
  ask.max_cpus_per_node = partition.max_cpus_per_node;
  ask.max_cpus_per_socket = partition.max_cpus_per_socket;
  ask.bound = cluster::bound_of(cluster, partition.name);
  ask.gpu_job = ask.exclusive || std::ranges::any_of(ask.devices, [](const DeviceAsk& want) {
                  return want.is_gpu() || want.shares_gpu();
                });
  ask.tmp_mb = request.tmp_mb.value_or(0);
  if (request.distribution) {
    ask.block_cores = request.distribution->sockets == request::CoreDist::block ||
                      request.distribution->nodes == request::NodeDist::plane;
    ask.plane_size = request.distribution->plane_size;
    if (request.distribution->nodes == request::NodeDist::arbitrary) {
      for (const std::string& host : request.nodelist) ++ask.arbitrary[host];
    }
  }
  if (!request.distribution || !request.distribution->sockets) {
    ask.block_cores = ask.block_cores || settings.core_default_dist_block;
  }
  ask.memory_counts = settings.memory_is_consumed;
  ask.max_memory_per_node = first_set(partition.max_mem_per_node_mb, settings.max_mem_per_node_mb);
  if (ask.max_memory_per_node == 0U) ask.max_memory_per_node.reset();  // 0 = no limit
  ask.least_loaded = partition.least_loaded;
  ask.memory = memory_ask(settings, partition, request, ask.wants_gpu());
  apply_max_mem_per_cpu(ask, first_set(partition.max_mem_per_cpu_mb, settings.max_mem_per_cpu_mb));
  apply_cpus_per_gpu(ask, request, first_set(partition.def_cpu_per_gpu, settings.def_cpu_per_gpu));
  ask.total_cpus = total_cpus(ask, request);
  ask.min_cpus_per_node = min_cpus_per_node(ask, request);
  return ask;
}

}  // namespace berth::place
