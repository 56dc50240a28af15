// Who uses what of a node when: running jobs until their limits, and those that wait from their
// planned start on. A plan names cores and devices, so "free for the whole of that time" is exact.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "job/state.h"
#include "schedule/horizon.h"
#include "schedule/reserved.h"

namespace berth::schedule {

/// A job that waits, and what it is going to have.
struct Planned {
  JobId job = 0;
  Span span;
  cluster::Allocation allocation;
  std::string reservation{};  // in which it is going to run; "" = none
  std::string partition{};
  std::uint64_t shape = 0;  // of the request that it was found for
};

/// Running jobs that are thought away: "what if these were gone?".
struct Gone {
  std::set<JobId> jobs;
  std::set<JobId> suspended;  // keep all but their cores
};

class Calendar {
 public:
  explicit Calendar(const job::State& state)
      : state_(&state),
        by_node_(state.cluster().nodes.size()),
        timelines_(state.cluster().nodes.size()),
        running_(state.cluster().nodes.size()) {}

  /// One job has one plan for each of its components.
  void add(Planned planned);
  void remove(JobId job);
  /// The plans of one job, which are no longer in force.
  std::vector<Planned> take(JobId job);
  /// All plans, which are no longer in force.
  std::multimap<JobId, Planned> take_plans();
  /// Nothing else has what this one is to have, in all its time.
  [[nodiscard]] bool is_free(const Planned& planned);
  [[nodiscard]] bool has(JobId job) const { return plans_.contains(job); }
  [[nodiscard]] const std::multimap<JobId, Planned>& plans() const { return plans_; }

  /// What runs has changed, or time has passed: numbers are worked out anew.
  void begin(Time now);
  /// Jobs may have ended since: what points to them is found anew.
  void go_on();
  /// Another with every begin(), and when reservations or openings have changed: what was worked
  /// out from them and from timelines does not hold any more.
  [[nodiscard]] std::uint64_t round() const { return round_ + horizon_.version(); }
  /// Nodes that have lost a plan in this round, one after the other.
  [[nodiscard]] const std::vector<NodeIndex>& regained() const { return regained_; }
  /// A job has started there.
  void started(const cluster::Allocation& allocation);

  /// Everything that follows is as a job in this reservation sees it (nullptr: in none), until
  /// `Inside` is gone.
  class Inside {
   public:
    Inside(Calendar& calendar, const Reservation* reservation)
        : calendar_(&calendar), before_(std::exchange(calendar.inside_, reservation)) {}
    ~Inside() { calendar_->inside_ = before_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Calendar* calendar_;
    const Reservation* before_;
  };
  [[nodiscard]] const Reservation* inside() const { return inside_; }
  [[nodiscard]] const Reserved& reserved() const { return reserved_; }
  /// Reservations have a say on this node.
  [[nodiscard]] bool reserved_on(NodeIndex node) const { return reserved_.touches(node, inside_); }
  /// False when they bar it altogether.
  [[nodiscard]] bool allows(NodeIndex node) const { return Reserved::allows(node, inside_); }

  /// False also when the node is down.
  [[nodiscard]] bool offers(NodeIndex node) const {
    return state_->cluster().nodes[node].usable && allows(node);
  }
  /// Something is planned on the node in that time.
  [[nodiscard]] bool planned_on(NodeIndex node, const Span& span) const;
  /// All that is used of a node at any moment of that time.
  [[nodiscard]] cluster::NodeUsage usage_over(NodeIndex node, const Span& span,
                                              const Gone* gone = nullptr) const {
    cluster::NodeUsage out;
    usage_over(node, span, gone, out);
    return out;
  }
  /// The same into memory that is there already.
  void usage_over(NodeIndex node, const Span& span, const Gone* gone,
                  cluster::NodeUsage& out) const;
  /// When more becomes free, wherever it be; planned jobs not counted.
  const std::vector<Opening>& openings() {
    return horizon_.follow(*state_, [this](NodeIndex node) -> const std::vector<Timeline::Use>& {
      return running_on(node);
    });
  }
  /// What is free of a node in numbers, for all time to come.
  const Timeline& timeline(NodeIndex node);
  /// When something planned on the node begins, from `from` on; 0 = never.
  [[nodiscard]] Time next_planned_start(NodeIndex node, Time from) const;

 private:
  struct Entry {
    const Planned* planned = nullptr;
    const cluster::NodeShare* share = nullptr;
    Span span;  // its own, near at hand
    [[nodiscard]] Timeline::Use use() const {
      return {span, share, planned->allocation.whole_nodes, false};
    }
  };
  /// Of jobs that run, then of those that are planned.
  [[nodiscard]] std::vector<Timeline::Use> uses(NodeIndex node) const;
  [[nodiscard]] const std::vector<Timeline::Use>& running_on(NodeIndex node) const;

  /// The node looks different from now on.
  void changed(NodeIndex node) {
    timelines_[node].forget();
    if (!seen_inside_.empty()) seen_inside_.erase(node);
  }
  /// A plan there has come, or with -1 has gone.
  void replanned(const Planned& planned, const cluster::NodeShare& share, std::int32_t times);
  void new_round();
  [[nodiscard]] Timeline exact_timeline(NodeIndex node) const;

  const job::State* state_;
  Time now_ = 0;
  std::uint64_t round_ = 0;
  std::vector<NodeIndex> regained_;
  Horizon horizon_;
  Reserved reserved_;
  const Reservation* inside_ = nullptr;
  std::multimap<JobId, Planned> plans_;
  std::vector<std::vector<Entry>> by_node_;
  std::vector<Timeline> timelines_;                                         // as far as known
  mutable std::vector<std::optional<std::vector<Timeline::Use>>> running_;  // unset: to be made
  /// Timelines of nodes where reservations have a say, by who looks.
  std::map<NodeIndex, std::map<const Reservation*, Timeline>> seen_inside_;
  // Nodes that may have one: a walk that looks at few nodes pays for few.
  std::vector<NodeIndex> with_timeline_;
  mutable std::vector<NodeIndex> with_running_;
  mutable std::vector<Timeline::Use> meeting_;  // room for usage_over() to work in
};

}  // namespace berth::schedule
