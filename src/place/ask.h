// A request made ready for placement: all numbers known, defaults of partition and cluster applied.
// One Ask is made for a job and then read for every node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "request/counts.h"
#include "request/request.h"

namespace berth::place {

/// One kind of device that is asked for (name and type), in all its spellings; 0 = not asked so.
struct DeviceAsk {
  std::string name;
  std::string type;  // "" = any
  std::uint64_t per_job = 0;
  std::uint64_t per_node = 0;
  std::uint64_t per_socket = 0;
  std::uint64_t per_task = 0;
  std::uint64_t least_memory_mb = 0;  // of the GPU: --gpu-mem-min

  /// The device is of the kind that is asked for.
  [[nodiscard]] bool takes(const cluster::Device& device) const {
    return (type.empty() || device.type == type) &&
           (least_memory_mb == 0 || device.known_memory_mb() >= least_memory_mb);
  }
  [[nodiscard]] bool shares_gpu() const { return text::is_part_of_gpu(name); }
  [[nodiscard]] bool is_gpu() const { return name == "gpu"; }
};

struct Ask {
  std::optional<std::uint32_t> tasks;             // T
  std::uint32_t cpus_per_task = 1;                // c
  std::optional<std::uint32_t> per_node_tasks;    // Tn
  std::optional<std::uint32_t> per_socket_tasks;  // Ts
  std::optional<std::uint32_t> per_core_tasks;    // Tc
  std::optional<std::uint32_t> per_gpu_tasks;     // Tg
  std::optional<std::uint32_t> threads_per_core;
  std::optional<std::uint32_t> sockets_per_node;
  std::optional<std::uint32_t> cores_per_socket;

  std::uint32_t min_nodes = 1;
  std::optional<std::uint32_t> max_nodes;
  std::uint32_t desired_nodes = 1;
  bool nodes_range = false;  // desired is a wish: the minimum makes a run sufficient
  std::vector<std::uint32_t> sizes;

  std::uint64_t total_cpus = 1;                      // P
  std::uint32_t min_cpus_per_node = 1;               // p
  std::optional<std::uint32_t> max_cpus_per_node;    // a limit of the partition
  std::optional<std::uint32_t> max_cpus_per_socket;  // likewise
  std::uint16_t bound = 0;  // whose jobs together have no more, see cluster::bound_of
  std::optional<std::uint32_t> cpus_per_gpu;
  std::optional<request::Memory> memory;  // unset = all memory of the nodes
  bool memory_counts = true;
  std::optional<std::uint64_t> max_memory_per_node;  // a limit of the partition or the cluster
  std::uint64_t tmp_mb = 0;

  bool exclusive = false;  // whole nodes
  bool alone = false;      // --exclusive=user|mcs: only what is asked, but no strangers
  bool overcommit = false;
  bool contiguous = false;
  bool spread = false;
  bool least_loaded = false;  // LLN: the emptiest nodes first
  bool asks_network = false;  // --switches or --segment
  bool any_network = false;   // wherever its nodes are: they are part of a choice made by others
  std::uint32_t segment = 0;  // --segment: so many nodes at a time within one block; 0 = not asked
  bool spread_segments = false;  // each in a block of its own
  bool enforce_binding = false;
  bool block_cores = false;  // -m *:block, plane
  std::optional<std::uint32_t> plane_size;
  bool multiple_sharing = false;
  bool least_loaded_shares = false;

  std::vector<DeviceAsk> devices;                  // per-socket ones first, else request order
  std::map<std::string, std::uint32_t> arbitrary;  // -m arbitrary: tasks of each listed node

  [[nodiscard]] bool wants_gpu() const;
  /// It has GPUs, or shares of them, and so the cores that are kept for such jobs. Whole nodes come
  /// with all they have.
  bool gpu_job = false;
  /// Cores of the node it may not have, whatever is free.
  [[nodiscard]] bool withholds(const cluster::Node& node) const {
    return node.reserved_cores.any() || (!gpu_job && node.gpu_cores.any());
  }
  [[nodiscard]] Bits withheld(const cluster::Node& node) const {
    return gpu_job ? node.reserved_cores : node.reserved_cores | node.gpu_cores;
  }
  /// CPUs usable per core on a node.
  [[nodiscard]] std::uint32_t usable_threads(const cluster::Node& node) const;
  /// CPUs of a core that are charged for: --threads-per-core lowers them, --ntasks-per-core does
  /// not.
  [[nodiscard]] std::uint32_t charged_threads(const cluster::Node& node) const {
    return std::min(node.threads_per_core, threads_per_core.value_or(node.threads_per_core));
  }
  /// Cores that so many tasks and CPUs take on a node.
  [[nodiscard]] std::uint32_t cores_for(const cluster::Node& node, std::uint32_t node_tasks,
                                        std::uint32_t cpus) const;
  /// Memory of a node that one job may have at most.
  [[nodiscard]] std::uint64_t memory_limit(const cluster::Node& node) const {
    return std::min(node.usable_memory_mb(), max_memory_per_node.value_or(~std::uint64_t{0}));
  }
  /// Memory a job of this many CPUs/GPUs takes on a node that has `node_mb`.
  [[nodiscard]] std::uint64_t memory_on(std::uint64_t node_mb, std::uint64_t cpus,
                                        std::uint64_t gpus) const;
};

/// Applies partition and cluster defaults (memory, CPUs per GPU) and works out P and p.
Ask make_ask(const cluster::Cluster& cluster, const cluster::Partition& partition,
             const request::Request& request, const request::Counts& counts);

}  // namespace berth::place
