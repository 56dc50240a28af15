// What one node could give to a job: CPUs, cores and devices (spec placement-jobs.md §3 and §4).
// The same examination serves nodes in the same state, so it looks at nothing but the node, what is
// taken on it, the ask and how far the job has been gathered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bits.h"
#include "cluster/usage.h"
#include "place/ask.h"

namespace berth::place {

/// Why a node cannot be used now.
enum class Cause {
  none,
  closed,          // held by an exclusive job
  busy_exclusive,  // --exclusive wants it empty
  memory,
  cpus,
  sockets,     // not enough usable sockets
  tasks,       // fewer tasks fit than --ntasks-per-node
  devices,     // not enough devices of the kind
  near_cores,  // devices are there, but not enough cores near them
  tmp_disk,
};

struct Offer {
  Cause cause = Cause::none;
  std::uint64_t have = 0;   // for the message: what there is …
  std::uint64_t asked = 0;  // … and what was asked
  std::size_t device = 0;   // which DeviceAsk failed, for Cause::devices

  std::uint32_t cpus = 0;                 // offered
  Bits cores;                             // the set the job's cores may come from
  std::vector<std::uint64_t> devices;     // usable units, by DeviceAsk
  std::vector<std::uint64_t> free_units;  // free on the node, by DeviceAsk
  std::uint32_t max_tasks = 0;            // upper task bound of the device rules
  std::uint32_t min_cores = 0;            // enforce-binding: one core on each needed socket
  std::uint64_t reach = 0;                // GPUs on sockets with a free core, capped

  [[nodiscard]] bool usable() const { return cause == Cause::none; }
};

/// How far the job has been gathered when the node is examined.
struct Gathered {
  std::vector<std::uint64_t> devices;  // per-job units taken so far, by DeviceAsk
  std::uint32_t nodes_missing = 1;     // minimum nodes still to come, this one included
};

enum class Pass {
  near,  // cores on the sockets of the devices
  any,   // any core
};

struct Examination {
  const Ask& ask;
  /// For "could it ever run": shares of all GPUs of a node count together, as Slurm does.
  bool pool_shares = false;

  [[nodiscard]] Offer examine(const cluster::Node& node, const cluster::NodeUsage& usage,
                              const Gathered& gathered, Pass pass) const;
};

/// Free units of a device on a node: 0 where the GPU itself is taken in the other way (whole
/// against shared).
std::uint64_t free_units(const cluster::Node& node, const cluster::NodeUsage& usage,
                         const cluster::Gres& gres, std::size_t device);

}  // namespace berth::place
