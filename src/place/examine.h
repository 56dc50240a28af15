// What one node could give to a job: CPUs, cores and devices (spec placement-jobs.md §3 and §4).
// The same examination serves nodes in the same state, so it looks at nothing but the node, what is
// taken on it, the ask and how far the job has been gathered.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bits.h"
#include "base/small_vector.h"
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
  sockets,  // not enough usable sockets
  cores_per_socket,
  threads,
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
  SmallVector<std::uint32_t, 4> kept;     // cores the job may use, by socket: its lowest free ones
  SmallVector<std::uint64_t, 2> devices;  // usable units, by DeviceAsk
  SmallVector<std::uint64_t, 2> free_units;  // free on the node, by DeviceAsk
  std::uint32_t max_tasks = 0;               // upper task bound of the device rules
  std::uint32_t min_cores = 0;               // enforce-binding: one core on each needed socket
  std::uint64_t reach = 0;                   // GPUs on sockets with a free core, capped

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

/// Examines nodes for one ask. What follows from a node's build alone is worked out once for each
/// class of equal nodes.
class Examination {
 public:
  /// `pool_shares` is for "could it ever run": shares of all GPUs of a node count together, as
  /// Slurm counts them then.
  Examination(const Ask& ask, bool pool_shares) : ask_(ask), pool_shares_(pool_shares) {}

  Offer examine(const cluster::Node& node, std::uint32_t hardware_class,
                const cluster::NodeUsage& usage, const Gathered& gathered, Pass pass);

  /// True when the node cannot be used whatever else is so: a look at a few totals that spares most
  /// examinations on a full cluster. Never true for a node that examine() would find usable.
  bool hopeless(const cluster::Node& node, std::uint32_t hardware_class,
                const cluster::NodeUsage& usage);

  /// Devices of one kind on a class of nodes.
  struct KindView {
    std::optional<std::size_t> position;  // of the gres on the node
    bool whole = true;                    // every device is one unit
    Bits any_socket;                      // devices of the type that belong to no socket
    std::vector<Bits> on_socket;          // the others, by socket
  };
  struct ClassView {
    std::vector<KindView> kinds;  // by DeviceAsk
  };

 private:
  const ClassView& view_of(const cluster::Node& node, std::uint32_t hardware_class);

  const Ask& ask_;
  bool pool_shares_;
  std::vector<std::optional<ClassView>> views_;
};

/// The cores an offer leaves on its node.
Bits offered_cores(const Ask& ask, const cluster::Node& node, const cluster::NodeUsage& usage,
                   const Offer& offer);

/// Free units of one device: 0 where its GPU is taken in the other way (whole against shared).
std::uint64_t free_units(const cluster::Node& node, const cluster::NodeUsage& usage,
                         const cluster::Gres& gres, std::size_t device);

}  // namespace berth::place
