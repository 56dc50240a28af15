// Which CPUs each task of a step may use on one node: from the step's mask to a level (sockets,
// cores, threads), to one mask a task, and to the words of SLURM_CPU_BIND.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bits.h"
#include "base/result.h"
#include "cluster/cluster.h"
#include "request/request.h"

namespace berth::place {

enum class BindLevel { automatic, sockets, cores, threads, ldoms };

/// What a step says about binding, the same on all its nodes.
struct CpuBindAsk {
  BindLevel level = BindLevel::automatic;
  std::optional<request::CpuBind> explicit_bind;  // none, map_cpu, mask_cpu, *_ldom
  bool verbose = false;
  request::CoreDist sockets = request::CoreDist::cyclic;
  std::optional<std::uint32_t> threads_per_core;  // threads of a core that may be used
  std::optional<std::uint32_t> ntasks_per_core;
  std::optional<std::uint32_t> ntasks_per_socket;  // counts for block only
  bool overcommit = false;
};

struct NodeBinding {
  bool bound = true;        // false: the tasks run without any mask
  std::vector<Bits> masks;  // by local task
  std::string type;         // "mask_cpu:", "none", "rank_ldom", …
  std::string list;         // "0x0001,0x0100"
};

/// The level that options imply when --cpu-bind does not name one (automatic when none does).
BindLevel implied_level(const request::Request& request);

/// `cores` are the step's cores on the node; `cpus_per_task` is c as asked (1 when it was not).
/// An error is the first line of the launch failure; see launch_failure().
Result<NodeBinding> bind_cpus(const cluster::Node& node, const Bits& cores, std::uint32_t tasks,
                              std::uint32_t cpus_per_task, const CpuBindAsk& ask);

/// The lines srun prints (exit 192) when a node refuses to launch for `cause`.
Error launch_failure(const Error& cause, std::uint32_t job, std::uint32_t step,
                     const std::string& node);

/// The binding of a process that is fenced in but not placed: batch scripts, mpirun's daemons,
/// --cpu-bind=none.
NodeBinding unplaced(const cluster::Node& node, const Bits& cores, std::uint32_t tasks);

/// "0x0003": upper case, padded to the width of the node.
std::string padded_mask(const cluster::Node& node, const Bits& cpus);

}  // namespace berth::place
