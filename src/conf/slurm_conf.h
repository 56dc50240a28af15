// slurm.conf as typed values: what berth uses of it, with where each value was written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bits.h"
#include "conf/complaints.h"
#include "conf/daemon_keys.h"
#include "conf/source.h"
#include "text/duration.h"
#include "text/tres.h"

namespace berth::conf {

inline constexpr std::size_t kMaxNodes = 65536;
inline constexpr std::size_t kMaxPartitions = 10000;

template <class T>
using Maybe = std::optional<Located<T>>;
/// Without the place it was read at.
template <class T>
std::optional<T> value_of(const Maybe<T>& from) {
  if (!from) return std::nullopt;
  return from->value;
}

/// A NodeName= line with the DEFAULT lines above it applied.
struct NodeLine {
  Location at;
  std::vector<std::string> names;
  Maybe<std::uint32_t> cpus, boards, sockets, sockets_per_board, cores_per_socket, threads_per_core;
  Maybe<std::uint64_t> real_memory_mb, tmp_disk_mb, mem_spec_limit_mb;
  Maybe<std::vector<text::TresItem>> gres;
  Maybe<std::vector<std::string>> features;
  Maybe<std::uint32_t> weight, core_spec_count;
  Maybe<std::uint32_t> restricted_cores_per_gpu;
  Maybe<std::uint32_t> suspend_seconds;  // kNeverSuspend = never
  Maybe<Bits> cpu_spec_list;
  Maybe<std::string> state;  // upper case: UNKNOWN, CLOUD, DOWN, DRAIN, FAIL, FAILING, FUTURE
  Maybe<std::string> reason;
  // One for each name, or one for all.
  Maybe<std::vector<std::string>> hostnames, addresses;
  Maybe<std::vector<std::uint32_t>> ports;
};

/// Limits and defaults that exist for the cluster and for each partition.
struct JobLimits {
  Maybe<std::uint64_t> def_mem_per_cpu_mb, def_mem_per_gpu_mb, def_mem_per_node_mb;
  Maybe<std::uint64_t> max_mem_per_cpu_mb, max_mem_per_node_mb;
  Maybe<std::uint32_t> def_cpu_per_gpu;
};

/// Who may use a partition and in which order it is served. Lists as written; unset = ALL.
struct PartitionRules {
  Maybe<std::uint32_t> priority_tier, priority_job_factor;
  Maybe<std::string> allow_groups, allow_accounts, deny_accounts, allow_qos, deny_qos, alloc_nodes;
  Maybe<std::string> qos, alternate, preempt_mode, billing_weights;
  Maybe<bool> hidden, root_only, disable_root_jobs, require_reservation;
  Maybe<std::uint32_t> over_time_limit_minutes;  // UINT32_MAX = unlimited
  Maybe<std::uint32_t> grace_seconds;
  Maybe<std::uint32_t> gpu_idle_seconds, max_gpu_idle_seconds;  // 0 = no limit
  Maybe<std::uint32_t> suspend_seconds;                         // kNeverSuspend = never
  Maybe<std::uint32_t> suspend_timeout_seconds, resume_timeout_seconds;
  Maybe<bool> power_down_on_idle;
};

/// A PartitionName= line with the DEFAULT lines above it applied.
struct PartitionLine {
  Location at;
  std::string name;
  Maybe<std::string> nodes;  // as written: host lists, node sets, ALL
  Maybe<bool> is_default;
  Maybe<std::string> state;  // UP, DOWN, DRAIN, INACTIVE
  Maybe<text::TimeLimit> max_time, default_time;
  Maybe<std::uint32_t> min_nodes, max_nodes;  // unset = unlimited
  Maybe<std::uint32_t> max_cpus_per_node, max_cpus_per_socket;
  JobLimits limits;
  Maybe<std::string> over_subscribe;  // NO, YES, FORCE, EXCLUSIVE
  Maybe<std::string> exclusive;       // NO, NODE, USER, TOPO
  Maybe<bool> least_loaded;
  PartitionRules rules;
};

struct DownNodesLine {
  Location at;
  std::vector<std::string> names;
  Maybe<std::string> state;
  Maybe<std::string> reason;
};

struct NodeSetLine {
  Location at;
  std::string name;
  Maybe<std::string> nodes;  // host list, or ALL
  Maybe<std::string> feature;
};

struct SlurmConf {
  std::string file;  // the name it was read under, for messages about the whole
  Maybe<std::string> cluster_name;
  Maybe<std::string> select_type;
  Maybe<std::vector<std::string>> select_parameters;
  Maybe<std::vector<std::string>> task_plugins;
  JobLimits limits;
  Maybe<std::uint32_t> max_tasks_per_node, max_array_size;
  Maybe<std::string> mpi_default;
  Maybe<std::string> enforce_part_limits;  // NO, ANY, ALL
  Maybe<std::vector<std::string>> gres_types;
  Maybe<std::string> topology_plugin;  // topology/flat, topology/tree, topology/block
  Maybe<std::vector<std::string>> topology_parameters;
  DaemonKeys daemon;
  std::map<std::string, std::string> given;  // global keys in lower case, values as written
  std::vector<NodeLine> nodes;
  std::vector<PartitionLine> partitions;
  std::vector<DownNodesLine> down_nodes;
  std::vector<NodeSetLine> node_sets;
};

/// Reads slurm.conf. Errors and warnings go to `complaints`; the result is only complete when
/// there are no errors.
SlurmConf read_slurm_conf(const FileSource& source, Complaints& complaints,
                          std::string_view name = "slurm.conf");

}  // namespace berth::conf
