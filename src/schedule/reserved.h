// What reservations keep of nodes, as seen by a job: one that is in a reservation has that for
// itself and nothing else, all others keep clear of it.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "job/state.h"
#include "schedule/timeline.h"

namespace berth::schedule {

using reservation::Reservation;

class Reserved {
 public:
  /// Reservations as they are now; costs nothing when none has changed.
  /// True when they are others than before.
  bool follow(const job::State& state);

  [[nodiscard]] bool any() const { return !by_node_.empty(); }
  /// A job in `inside` (nullptr: in none) does not have the node for itself all the time.
  [[nodiscard]] bool touches(NodeIndex node, const Reservation* inside) const {
    return bound_in_time(inside) || (!by_node_.empty() && !by_node_[node].empty());
  }
  /// False when it may not be on this node at all.
  [[nodiscard]] static bool allows(NodeIndex node, const Reservation* inside) {
    return inside == nullptr || inside->on_any_node() || inside->share_of(node) != nullptr;
  }
  /// Adds what it cannot have of the node in that time.
  void add_meeting(NodeIndex node, const Reservation* inside, const Span& span, Time now,
                   std::vector<Timeline::Use>& out) const;
  /// Moments at which that changes, as far as is worth knowing.
  void add_changes(NodeIndex node, const Reservation* inside, Time now,
                   std::vector<Time>& out) const;
  /// When it next cannot have the node as it can have it at `from`; 0 = never.
  [[nodiscard]] Time next_taken(NodeIndex node, const Reservation* inside, Time from,
                                Time now) const;
  /// Those with something of the node.
  [[nodiscard]] const std::vector<const Reservation*>& on(NodeIndex node) const;

 private:
  /// Jobs in it have to be over when it is.
  [[nodiscard]] static bool bound_in_time(const Reservation* inside) {
    return inside != nullptr && !inside->flags.has(reservation::Flag::flex);
  }

  std::uint64_t round_ = 0;
  std::vector<std::vector<const Reservation*>> by_node_;  // empty when there are none
  /// What a reservation that has a part of a node does not have of it.
  std::map<std::pair<std::string, NodeIndex>, cluster::NodeShare> others_;
};

}  // namespace berth::schedule
