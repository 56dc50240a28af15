// What is taken on a cluster, and the allocation that takes it. Taking and releasing are exact
// inverses; taking what is not free is a broken invariant.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/small_vector.h"
#include "cluster/change_log.h"
#include "cluster/cluster.h"
#include "cluster/room.h"
#include "cluster/typical.h"

namespace berth::cluster {

/// Units taken of each device of one gres on one node.
struct GresShare {
  std::string name;                    // "gpu"
  std::vector<std::uint64_t> units;    // by device index; 0 = not taken
  [[nodiscard]] Bits devices() const;  // indices with units > 0
  [[nodiscard]] std::uint64_t total() const;
};

/// What a job (or a step) holds on one node.
struct NodeShare {
  NodeIndex node = 0;
  Bits cores;                     // whole cores
  std::uint32_t cpus = 0;         // hardware threads of these cores (what is charged)
  std::uint32_t usable_cpus = 0;  // those a task may use (--threads-per-core lowers it)
  std::uint32_t tasks = 0;        // tasks the job's layout counts here
  std::uint64_t memory_mb = 0;
  /// The partition whose jobs together have only so many CPUs of a node, see bound_of(); 0 = none.
  std::uint16_t bound = 0;
  std::vector<GresShare> gres;  // only those taken

  [[nodiscard]] const GresShare* find(std::string_view name) const;
  /// Indices of the GPUs in use here: whole ones, and those that carry the job's shards or MPS.
  [[nodiscard]] Bits gpus() const;
};

struct Allocation {
  std::vector<NodeShare> nodes;  // ascending node index
  bool whole_nodes = false;      // --exclusive: closed to all others
};

/// What is taken on one node by all jobs.
struct NodeUsage {
  Bits cores;
  std::uint64_t memory_mb = 0;
  std::uint32_t jobs = 0;
  bool closed = false;                           // held by an exclusive job
  std::vector<std::vector<std::uint64_t>> gres;  // [gres position of the node][device]
  /// [gres position]: devices of which nothing is left, because all units are taken, because the
  /// GPU is taken in the other way (whole against shared) or because it is out of service.
  std::vector<Bits> blocked;
  /// [gres position]: how many devices are not blocked. A node is passed over by this number alone
  /// where it can be, without looking further.
  SmallVector<std::uint32_t, 4> open_devices;
  /// [bound - 1]: cores of partitions whose jobs together are limited; empty where there are none.
  std::vector<Bits> bounded;
  /// What the placement policy made of this node when it looked last, 0 = has not looked since it
  /// changed. Read and written by `place` alone.
  mutable std::uint64_t policy_mark = 0;

  [[nodiscard]] bool idle() const { return jobs == 0; }
  /// Cores that jobs under the same bound have.
  [[nodiscard]] const Bits* bounded_cores(std::uint16_t bound) const {
    return bound == 0 || bound > bounded.size() ? nullptr : &bounded[bound - 1];
  }
  void bind_cores(const NodeShare& share);
};

/// The number of a partition with MaxCPUsPerNode or MaxCPUsPerSocket, 0 = it has neither.
std::uint16_t bound_of(const Cluster& cluster, std::string_view partition);
/// The allocation is of a job in that partition.
void bind_to(const Cluster& cluster, std::string_view partition, Allocation& allocation);

/// What a placement policy remembers from job to job; made by `place`, shared by all copies of a
/// usage. Who finds it busy (another thread looks at a copy) does without.
class PolicyMemory {
 public:
  PolicyMemory() = default;
  PolicyMemory(const PolicyMemory&) = delete;
  PolicyMemory& operator=(const PolicyMemory&) = delete;
  virtual ~PolicyMemory() = default;
};
struct PolicySlot {
  std::unique_ptr<PolicyMemory> memory;
  std::atomic_flag busy;
};

class Usage {
 public:
  explicit Usage(const Cluster& cluster);

  [[nodiscard]] const NodeUsage& at(NodeIndex node) const { return nodes_[node]; }
  /// Nodes with the same value have the same hardware and the same things taken, so one
  /// examination answers for all of them.
  [[nodiscard]] std::uint32_t state_of(NodeIndex node) const { return states_[node]; }
  [[nodiscard]] std::uint32_t state_count() const { return state_count_; }

  /// Nodes of one class have the same hardware.
  [[nodiscard]] std::uint32_t class_of(NodeIndex node) const { return hardware_class_[node]; }
  [[nodiscard]] std::uint32_t class_count() const {
    return static_cast<std::uint32_t>(pristine_.size());
  }
  /// Any one node of that class: its hardware stands for all of them.
  [[nodiscard]] const Node& example(std::uint32_t hardware_class) const {
    return cluster_->nodes[examples_[hardware_class]];
  }
  /// A node of that class with nothing taken and all of its GPUs in service.
  [[nodiscard]] const NodeUsage& pristine(std::uint32_t hardware_class) const {
    return pristine_[hardware_class];
  }

  void take(const Allocation& allocation);
  void release(const Allocation& allocation);

  /// What was taken lately, where the policy wants to know it. More may be noted, e.g. from
  /// history.
  [[nodiscard]] const Typical& typical() const { return typical_; }
  [[nodiscard]] Typical& typical() { return typical_; }
  [[nodiscard]] PolicySlot& policy() const { return *policy_; }

  /// What is free, in short: nothing on nodes that are not usable or are closed.
  [[nodiscard]] const RoomTree& rooms() const { return rooms_; }
  /// Node::usable has changed.
  void refresh_room(NodeIndex node);
  /// Node::gpus_out has changed.
  void refresh_gpus_out(NodeIndex node);
  /// Every change of what is free on a node, or of Node::usable.
  [[nodiscard]] const ChangeLog& changes() const { return changes_; }
  /// Nodes that have more room than before, since the last call; some of them several times.
  std::vector<NodeIndex> take_grown();

 private:
  void change(const Allocation& allocation, bool taking);
  void refresh_state(NodeIndex node);
  void forget_old_states();

  const Cluster* cluster_;
  std::vector<NodeUsage> nodes_;
  std::vector<std::uint32_t> states_;
  std::uint32_t state_count_ = 0;
  std::map<std::string, std::uint32_t> state_ids_;
  std::vector<std::uint32_t> hardware_class_;
  std::vector<NodeUsage> pristine_;
  std::vector<NodeIndex> examples_;
  RoomTree rooms_;
  ChangeLog changes_;
  std::vector<NodeIndex> grown_;
  Typical typical_;
  std::shared_ptr<PolicySlot> policy_ = std::make_shared<PolicySlot>();
};

/// What a share of a node is as a demand.
Demand demand_of(const Node& node, const NodeShare& share);

/// The node has free what the share takes; `alone`: and runs nothing else. `again`: it had it
/// before, so that what is not given out any more may stay with it.
bool is_free(const Node& node, const NodeUsage& used, const NodeShare& share, bool alone,
             bool memory_counts, bool again = false);
/// Works out `blocked` and `open_devices` from the units that are taken and Node::gpus_out.
void refresh_blocked(const Node& node, NodeUsage& usage);
/// What is free on a node that looks like this; nothing where it is closed, unless that is left
/// aside.
Room room_of(const Node& node, const NodeUsage& usage, bool closed_too = false);

/// How some nodes look at another time than now; all others look as they do.
class Overlay {
 public:
  explicit Overlay(std::size_t nodes) : slots_(nodes, -1) {}
  /// The node's usage, to be filled in: there may be anything in it.
  [[nodiscard]] NodeUsage& put(NodeIndex node);
  void clear();
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  /// Position of the node among those put, or -1.
  [[nodiscard]] std::int32_t slot(NodeIndex node) const { return slots_[node]; }
  [[nodiscard]] const NodeUsage& at(std::int32_t slot) const {
    return usages_[static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

 private:
  std::vector<std::int32_t> slots_;  // by node
  std::vector<NodeIndex> nodes_;
  std::vector<NodeUsage> usages_;  // at least as many: their memory is used again
};

/// The usage as it is, the same with some nodes at another time, or the same cluster with nothing
/// taken ("could it ever run?").
class UsageView {
 public:
  UsageView(const Usage& usage, bool empty) : usage_(&usage), empty_(empty) {}  // NOLINT
  UsageView(const Usage& usage, const Overlay& overlay)
      : usage_(&usage), overlay_(overlay.empty() ? nullptr : &overlay), empty_(false) {}
  [[nodiscard]] const NodeUsage& at(NodeIndex node) const {
    if (empty_) return usage_->pristine(usage_->class_of(node));
    const std::int32_t slot = slot_of(node);
    return slot < 0 ? usage_->at(node) : overlay_->at(slot);
  }
  [[nodiscard]] std::uint32_t state_of(NodeIndex node) const {
    if (empty_) return usage_->class_of(node);
    const std::int32_t slot = slot_of(node);
    return slot < 0 ? usage_->state_of(node)
                    : usage_->state_count() + static_cast<std::uint32_t>(slot);
  }
  [[nodiscard]] std::uint32_t state_count() const {
    if (empty_) return usage_->class_count();
    return usage_->state_count() +
           (overlay_ == nullptr ? 0U : static_cast<std::uint32_t>(overlay_->size()));
  }
  [[nodiscard]] std::uint32_t class_of(NodeIndex node) const { return usage_->class_of(node); }
  [[nodiscard]] std::uint32_t class_count() const { return usage_->class_count(); }
  [[nodiscard]] const Node& example(std::uint32_t hardware_class) const {
    return usage_->example(hardware_class);
  }
  [[nodiscard]] const Usage& usage() const { return *usage_; }
  /// True when the node looks as it does now.
  [[nodiscard]] bool as_is(NodeIndex node) const { return !empty_ && slot_of(node) < 0; }

 private:
  [[nodiscard]] std::int32_t slot_of(NodeIndex node) const {
    return overlay_ == nullptr ? -1 : overlay_->slot(node);
  }

  const Usage* usage_;
  const Overlay* overlay_ = nullptr;
  bool empty_;
};

}  // namespace berth::cluster
