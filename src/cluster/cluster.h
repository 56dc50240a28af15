// What a cluster is made of: nodes with sockets, cores, threads, memory and generic resources;
// partitions; and the few settings that change where jobs are placed. Values only: built by `site`
// from a configuration, never changed by placement.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bits.h"
#include "cluster/topology.h"
#include "text/tres.h"

namespace berth::cluster {

/// Position of a node in Cluster::nodes. Nodes are kept in natural order of their names, and that
/// order is the node index of every rule.
using NodeIndex = std::uint32_t;

/// Which variables tell processes of a GPU: Flags= of gres.conf.
struct GpuVariables {
  bool cuda = true;        // CUDA_VISIBLE_DEVICES
  bool rocr = true;        // ROCR_VISIBLE_DEVICES
  bool opencl = true;      // GPU_DEVICE_ORDINAL
  bool level_zero = true;  // ZE_AFFINITY_MASK
  bool by_uuid = false;    // names instead of numbers, where a variable takes them
  bool of_vendor = false;  // as the vendor of what its node finds will have it (AutoDetect=full)
  friend bool operator==(const GpuVariables&, const GpuVariables&) = default;

  /// "nvidia", "amd", "intel": that vendor's alone.
  void only(std::string_view vendor);
};

/// One allocatable device of a node: a GPU, a NIC, or a pool that is only counted.
struct Device {
  std::string type;         // "" = untyped
  Bits sockets;             // sockets its Cores= cover; empty = usable from any socket
  std::uint64_t units = 1;  // 1 for a device file; shards/MPS units of a GPU; the count of a pool
  int record = 0;           // which gres.conf line described it (several devices may share one)
  std::vector<int> links;   // links[i] = links to device i of the same gres; empty = not known
  std::string file;         // "/dev/nvidia0"; "" when not known
  std::uint64_t memory_mb = 0;           // as its node told; 0 = it did not
  std::string uuid;                      // "MIG-…": what programs find it by; "" = by its index
  GpuVariables variables;                // of a GPU
  std::vector<std::string> other_files;  // MultipleFiles=: what else belongs to it

  /// True when the device is near every socket of the node or has no Cores at all.
  [[nodiscard]] bool any_socket(std::uint32_t node_sockets) const {
    return sockets.empty() || sockets.count() == node_sockets;
  }
  /// Told, or in the name of its type ("a100_80gb", "a100_3g.20gb"); 0 = not known.
  [[nodiscard]] std::uint64_t known_memory_mb() const;
  [[nodiscard]] bool near(std::uint32_t socket) const {
    return sockets.empty() || sockets.test(socket);
  }
};

/// The model is the one wanted, or one of several: "a100|h100"; "" = any.
bool is_one_of(std::string_view type, std::string_view wanted);

/// All devices of one name on one node, in device index order.
struct Gres {
  std::string name;               // "gpu", "shard", "mps", "nic", …
  std::vector<Device> devices;    // for shard and mps: one entry for each GPU, same index
  bool shares_gpu = false;        // shard, mps, gpumem: units of the GPU of the same index
  bool one_sharing = false;       // of these only one GPU of a node is shared at a time
  bool counted = false;           // no device files: units of one pool, no indices
  bool given_explicitly = false;  // gres.conf Flags=explicit: --exclusive does not take it

  /// gpumem: its units are what the node tells of its GPUs. Jobs may hold more after a restart,
  /// while it has not told yet.
  [[nodiscard]] bool is_told() const { return name == text::kGpuMemory; }
  /// What a job gets of it on a node is of one GPU, whatever the cluster allows of shards.
  [[nodiscard]] bool never_split() const { return one_sharing || is_told(); }
  [[nodiscard]] std::uint64_t total() const;
  /// Units of devices of that type ("" = any).
  [[nodiscard]] std::uint64_t total_of(std::string_view type) const;
};

struct Node {
  std::string name;
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;
  std::uint64_t memory_mb = 1;
  std::uint64_t tmp_disk_mb = 0;
  std::uint32_t weight = 1;
  std::vector<std::string> features;
  std::vector<Gres> gres;
  Bits reserved_cores;                   // CoreSpecCount/CpuSpecList: never given to jobs
  std::uint64_t reserved_memory_mb = 0;  // MemSpecLimit
  std::uint32_t restricted_cores_per_gpu = 0;
  Bits gpu_cores;      // RestrictedCoresPerGPU: given to jobs with GPUs alone
  bool usable = true;  // not DOWN/DRAIN/FUTURE
  std::string state_reason;
  /// GPUs that are out of service while the node is not, and why: they, and what shares them, are
  /// not given out. Who has one keeps it.
  std::map<std::uint32_t, std::string> gpus_out;
  bool cloud = false;              // State=CLOUD: there only while it is switched on
  std::uint32_t wake_seconds = 0;  // it is switched off: it may take so long until it is up

  /// Nodes of lower order are used first: by weight, and of equal ones those that are up.
  [[nodiscard]] std::uint64_t order() const {
    return std::uint64_t{weight} * 2 + (wake_seconds > 0 ? 1 : 0);
  }

  [[nodiscard]] std::uint32_t cores() const { return sockets * cores_per_socket; }
  [[nodiscard]] std::uint32_t cpus() const { return cores() * threads_per_core; }
  [[nodiscard]] std::uint32_t socket_of(std::size_t core) const {
    return static_cast<std::uint32_t>(core) / cores_per_socket;
  }
  [[nodiscard]] std::uint64_t usable_memory_mb() const {
    return memory_mb - std::min(memory_mb, reserved_memory_mb);
  }
  /// All cores of a socket.
  [[nodiscard]] Bits socket_cores(std::uint32_t socket) const {
    return Bits::range(std::size_t{socket} * cores_per_socket,
                       (std::size_t{socket} + 1) * cores_per_socket - 1);
  }
  /// All hardware threads (CPU ids, core × threads + thread) of a set of cores.
  [[nodiscard]] Bits threads_of(const Bits& cores) const;
  [[nodiscard]] const Gres* find_gres(std::string_view name) const;
  [[nodiscard]] bool has_feature(std::string_view feature) const;
};

/// gpumem: MiB of each GPU, as far as they are known; nodes tell more when they register.
void add_gpu_memory(Node& node);

enum class PartitionState { up, down, drain, inactive };

struct Partition {
  std::string name;
  std::vector<NodeIndex> nodes;  // ascending
  bool is_default = false;
  PartitionState state = PartitionState::up;
  std::optional<std::uint32_t> max_time_minutes;      // unset = unlimited
  std::optional<std::uint32_t> default_time_minutes;  // unset = max_time
  std::uint32_t min_nodes = 0;
  std::optional<std::uint32_t> max_nodes;
  std::optional<std::uint32_t> max_cpus_per_node;
  std::optional<std::uint32_t> max_cpus_per_socket;
  std::optional<std::uint64_t> def_mem_per_cpu_mb;
  std::optional<std::uint64_t> def_mem_per_node_mb;
  std::optional<std::uint64_t> def_mem_per_gpu_mb;
  std::optional<std::uint64_t> max_mem_per_cpu_mb;
  std::optional<std::uint64_t> max_mem_per_node_mb;
  std::optional<std::uint32_t> def_cpu_per_gpu;
  bool exclusive_nodes = false;  // Exclusive=NODE / OverSubscribe=EXCLUSIVE
  bool least_loaded = false;     // LLN
};

enum class EnforcePartLimits { no, any, all };

/// How a node is chosen among those that could take a job.
enum class Placement {
  best_fit,    // as select/cons_tres does
  keep_whole,  // berth's own: BERTH_KEEP_GPUS_WHOLE
};

struct Settings {
  std::vector<std::string> gres_types;  // GresTypes
  std::optional<std::uint64_t> def_mem_per_cpu_mb;
  std::optional<std::uint64_t> def_mem_per_node_mb;
  std::optional<std::uint64_t> def_mem_per_gpu_mb;
  std::optional<std::uint64_t> max_mem_per_cpu_mb;
  std::optional<std::uint64_t> max_mem_per_node_mb;
  std::optional<std::uint32_t> def_cpu_per_gpu;
  bool memory_is_consumed = true;        // SelectTypeParameters has _Memory
  bool enforce_binding_gres = false;     // ENFORCE_BINDING_GRES
  bool multiple_sharing_gres = false;    // MULTIPLE_SHARING_GRES_PJ
  bool one_task_per_sharing = false;     // ONE_TASK_PER_SHARING_GRES
  bool least_loaded_shares = false;      // LL_SHARED_GRES
  bool core_default_dist_block = false;  // CR_CORE_DEFAULT_DIST_BLOCK
  bool one_task_per_core = false;        // CR_ONE_TASK_PER_CORE
  bool task_affinity = true;             // TaskPlugin has task/affinity
  bool constrain_devices = false;  // task/cgroup and ConstrainDevices=yes: GPUs renumbered from 0
  bool step_fence = false;         // gpu_fence=step: bound tasks may open all GPUs of their step
  std::uint32_t max_tasks_per_node = 512;
  std::uint32_t max_array_size = 1001;
  EnforcePartLimits enforce_part_limits = EnforcePartLimits::no;
  Placement placement = Placement::best_fit;
  std::string mpi_default = "none";
  bool hydra_bootstrap = true;  // MpiParams lacks disable_slurm_hydra_bootstrap
};

struct Cluster {
  std::string name = "cluster";
  std::vector<Node> nodes;  // natural order of names
  std::vector<Partition> partitions;
  Settings settings;
  Topology topology;  // by node index: made after index_nodes()

  [[nodiscard]] const Partition* find_partition(std::string_view name) const;
  [[nodiscard]] const Partition* default_partition() const;
  [[nodiscard]] std::optional<NodeIndex> find_node(std::string_view name) const;
  /// Sorts nodes into natural order and makes the name lookup; call once after filling `nodes`.
  /// Partition::nodes must be filled afterwards.
  void index_nodes();
  /// Over all nodes, since index_nodes().
  [[nodiscard]] std::uint32_t most_threads() const { return most_threads_; }
  [[nodiscard]] std::uint64_t least_memory_mb() const { return least_memory_mb_; }
  [[nodiscard]] bool equal_weights() const;

 private:
  std::uint32_t most_threads_ = 1;
  std::uint64_t least_memory_mb_ = 0;
  std::map<std::string, NodeIndex, std::less<>> by_name_;
};

}  // namespace berth::cluster
