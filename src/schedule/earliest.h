// The earliest moment at which a job can run for as long as it asks for without taking anything
// that is planned for another.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "place/prepared.h"
#include "schedule/calendar.h"
#include "schedule/soonest.h"

namespace berth::schedule {

/// Counts what was done, so that a pass can stop after a share of it, the same in every run.
struct Work {
  std::size_t looked_at = 0;  // nodes and openings
  std::size_t placed = 0;     // placements worked out
};

class Earliest {
 public:
  Earliest(const job::State& state, Calendar& calendar, Time now);

  struct Found {
    Time start = 0;
    place::JobPlan plan;
  };
  /// Where it starts now, or nullopt; `few_switches` as for Prepared::now().
  std::optional<place::JobPlan> now(const place::Prepared& job, Time seconds, Work& work,
                                    bool few_switches = false);
  /// The same on these nodes (ascending) alone.
  std::optional<place::JobPlan> now_on(std::span<const NodeIndex> nodes, const place::Prepared& job,
                                       Time seconds, Work& work, bool few_switches = false) {
    return place_at(job, {now_, now_ + seconds + wake_of(nodes)}, nodes, work, few_switches);
  }
  /// How long a job on these nodes waits until all of them are switched on; 0 = they are up.
  [[nodiscard]] Time wake_of(std::span<const NodeIndex> nodes) const;
  [[nodiscard]] Time wake_of(const cluster::Allocation& allocation) const;
  /// After now(): plans of others kept it from some node.
  [[nodiscard]] bool plans_in_the_way() const { return plans_in_the_way_; }
  /// Likewise reservations.
  [[nodiscard]] bool reservations_in_the_way() const { return !kept_out_.empty(); }
  /// Some nodes that it could have had but for them.
  [[nodiscard]] const std::vector<NodeIndex>& kept_out() const { return kept_out_; }
  /// The first start after now, and not before `not_before`; nullopt: not within reach (nodes are
  /// down), or not found with reasonable work.
  std::optional<Found> later(const place::Prepared& job, Time seconds, Time not_before, Work& work,
                             bool few_switches = false);
  /// True when enough nodes have room at this moment, whatever is planned there.
  bool room_now(const place::Prepared& job, Work& work) const;
  /// A job has started there, and will end.
  void started(const cluster::Allocation& allocation);

 private:
  std::optional<place::JobPlan> look_now(const place::Prepared& job, Time seconds, bool only_awake,
                                         Work& work, bool few_switches);
  std::optional<place::JobPlan> place_at(const place::Prepared& job, const Span& span,
                                         std::span<const NodeIndex> nodes, Work& work,
                                         bool few_switches);
  const std::vector<Opening>& openings();
  /// All nodes, in the order in which such a need can be met.
  Soonest& soonest(const NeedKind& kind);

  const job::State* state_;
  Calendar* calendar_;
  Time now_;
  cluster::Overlay overlay_;
  cluster::NodeUsage usage_;                        // room to work in, as the next one
  const std::vector<Opening>* openings_ = nullptr;  // unset: to be brought up to date
  std::vector<NodeIndex> changed_;  // nodes where a job has started since that was done
  struct Row {
    Soonest nodes;
    std::size_t regained = 0;  // so many of the calendar's are known
  };
  std::map<NeedKind, Row> soonest_;
  std::uint64_t round_ = 0;  // of the calendar, in which they were made
  bool plans_in_the_way_ = false;
  std::vector<NodeIndex> kept_out_;
};

}  // namespace berth::schedule
