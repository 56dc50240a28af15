// The one form of what a user asks for: every option of sbatch, srun and salloc, typed. Text goes
// in once (parse.h); everything later works on these values. Unset is nullopt/empty, never 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bits.h"
#include "base/result.h"
#include "request/options.h"

namespace berth::request {

enum class Command { sbatch, srun, salloc };
std::string_view command_name(Command command);

/// name[:type]:count, e.g. gpu:a100:2. Names are without the "gres/" prefix.
struct GresAsk {
  std::string name;
  std::string type;  // "" = any
  std::uint64_t count = 0;
  friend bool operator==(const GresAsk&, const GresAsk&) = default;
};

/// -N: min[-max], or a list of sizes ("2,4,8", "1-9:4") tried from the largest down.
struct NodeCount {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  bool range = false;                // written min-max (or a size list): max is a wish, not a must
  std::vector<std::uint32_t> sizes;  // ascending; empty = every count from min to max
  friend bool operator==(const NodeCount&, const NodeCount&) = default;
};

enum class MemoryPer { node, cpu, gpu };
struct Memory {
  MemoryPer per = MemoryPer::node;
  std::uint64_t mb = 0;  // 0 = all of the node (job) / all of the job's, not reserved (step)
  friend bool operator==(const Memory&, const Memory&) = default;
};

enum class NodeDist { block, cyclic, plane, arbitrary };
enum class CoreDist { cyclic, block, fcyclic };
/// -m node[:socket[:core]][,pack|nopack]; "*" leaves a level unset.
struct Distribution {
  std::optional<NodeDist> nodes;
  std::optional<CoreDist> sockets;
  std::optional<CoreDist> cores;
  std::optional<std::uint32_t> plane_size;
  std::optional<bool> pack;
  std::string text;  // as SLURM_DISTRIBUTION shows it, e.g. "block:fcyclic"
};

enum class Hint { compute_bound, memory_bound, multithread, nomultithread };

enum class CpuBindKind {
  none,
  rank,
  sockets,
  cores,
  threads,
  ldoms,
  rank_ldom,
  map_cpu,
  mask_cpu,
  map_ldom,
  mask_ldom
};
struct CpuBind {
  std::optional<CpuBindKind> kind;  // unset: only the verbosity was given
  bool verbose = false;
  std::vector<Bits> list;  // map_cpu: one CPU each; mask_cpu: masks; *_ldom: ldom sets
  std::string list_text;   // as given, for SLURM_CPU_BIND_LIST
};

/// srun --launcher: who starts the ranks, or asks who they are.
enum class Launcher { none, torch, jax, mpi };

enum class GpuBindKind { none, closest, single, per_task, map, mask };
struct GpuBind {
  GpuBindKind kind = GpuBindKind::none;
  std::uint32_t count = 1;  // single:<tasks a GPU>, per_task:<GPUs a task>
  std::vector<Bits> list;   // map: one id each; mask: device sets ("id*n" already expanded)
  bool verbose = false;
  std::string gres = "gpu";  // which TRES it binds: gpu or shard
  std::string text;          // as SLURM_TRES_BIND shows it: "gres/gpu:per_task:1"
};

struct GresFlags {
  bool enforce_binding = false;
  bool disable_binding = false;
  bool allow_task_sharing = false;
  bool no_task_sharing = false;  // berth's own: where the configuration allows it
  bool one_task_per_sharing = false;
  bool multiple_tasks_per_sharing = false;
};

/// --switches=count[@time].
struct SwitchAsk {
  std::uint32_t count = 0;
  std::optional<std::uint64_t> wait_seconds;  // for so few of them; unset = as long as is allowed
};

enum class Exclusive { no, node, user, mcs, topo, allocation };

/// Everything one component of a job, or one srun, asks for.
struct Request {
  Command command = Command::sbatch;
  OptionSet given;  // which options were given, with their text and where (line, variable, …)

  // Size
  std::optional<NodeCount> nodes;
  std::optional<std::uint32_t> ntasks;
  std::optional<std::uint32_t> ntasks_per_node;
  std::optional<std::uint32_t> ntasks_per_socket;
  std::optional<std::uint32_t> ntasks_per_core;
  std::optional<std::uint32_t> ntasks_per_gpu;
  std::optional<std::uint32_t> cpus_per_task;  // -c or --tres-per-task=cpu
  std::optional<std::uint32_t> mincpus;
  std::optional<std::uint32_t> sockets_per_node;
  std::optional<std::uint32_t> cores_per_socket;
  std::optional<std::uint32_t> threads_per_core;  // also set to 1 by --hint=nomultithread
  std::optional<Hint> hint;
  bool overcommit = false;
  bool oversubscribe = false;
  Exclusive exclusive = Exclusive::no;

  // Memory and disk
  std::optional<Memory> memory;
  std::optional<std::uint64_t> tmp_mb;

  // Generic resources. `gres_none`: --gres=none. Zero counts are kept (they stop inheritance).
  std::vector<GresAsk> gres_per_node;    // --gres and --gpus-per-node
  std::vector<GresAsk> gres_per_job;     // --gpus
  std::vector<GresAsk> gres_per_socket;  // --gpus-per-socket
  std::vector<GresAsk> gres_per_task;    // --gpus-per-task and --tres-per-task=gres/…
  bool gres_none = false;
  std::optional<std::uint64_t> gpu_mem_min_mb;  // least memory of each GPU
  std::optional<std::uint32_t> cpus_per_gpu;
  std::optional<GpuBind> gpu_bind;  // given explicitly (--gpu-bind, --tres-bind)
  GresFlags gres_flags;

  // Where
  std::vector<std::string> nodelist;  // -w or -F, expanded; repeats matter for -m arbitrary
  std::vector<std::string> exclude;
  std::vector<std::string> partitions;
  std::optional<std::string> constraint;
  std::optional<std::string> prefer;
  bool contiguous = false;
  bool spread_job = false;
  bool use_min_nodes = false;
  std::optional<SwitchAsk> switches;
  std::optional<std::uint32_t> segment;
  bool spread_segments = false;
  std::optional<Distribution> distribution;

  // Time, in minutes; nullopt inside = unlimited was asked for
  std::optional<std::optional<std::uint32_t>> time_limit;
  std::optional<std::uint32_t> time_min;
  std::optional<std::optional<std::uint32_t>> gpu_idle_seconds;  // nullopt inside = never

  // Steps
  bool exact = false;  // --exact (and --exclusive inside an allocation)
  bool overlap = false;
  bool external_launcher = false;
  bool immediate = false;
  std::optional<std::uint32_t> relative;
  std::optional<CpuBind> cpu_bind;
  std::optional<std::uint32_t> jobid;
  std::vector<std::uint32_t> het_groups;
  bool multi_prog = false;
  bool pty = false;
  std::optional<Launcher> launcher;

  // The program
  std::vector<std::string> argv;  // script and its arguments, or the command
  std::optional<std::string> wrap;

  // Bookkeeping that placement does not read
  std::optional<std::string> job_name;
  std::optional<std::string> output;
  std::optional<std::string> error;
  std::optional<std::string> input;
  std::optional<std::string> array;         // text as given, validated
  std::optional<std::uint64_t> array_size;  // number of elements
  Bits array_indices;                       // which ones
  std::optional<std::string> dependency;
  std::optional<std::string> export_env;
  std::optional<std::string> chdir;
};

using Environment = std::map<std::string, std::string>;

}  // namespace berth::request
