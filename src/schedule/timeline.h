// What is free on one node as time goes on, in numbers: running jobs end, planned ones begin and
// end.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "cluster/usage.h"
#include "job/types.h"

namespace berth::schedule {

using cluster::NodeIndex;
using job::JobId;
using job::kYear;
using job::Time;

/// A stretch of time, from `from` up to but without `until`.
struct Span {
  Time from = 0;
  Time until = 0;
  [[nodiscard]] bool meets(const Span& other) const {
    return from < other.until && other.from < until;
  }
};

/// Numbers of a node: what one job has of it, or what is free.
struct Amount {
  Amount() = default;
  Amount(const cluster::NodeShare& share, bool whole_node);
  explicit Amount(const cluster::Room& free);
  void add(const Amount& other, std::int32_t times);
  [[nodiscard]] bool holds(const Amount& least) const {
    return cores >= least.cores && gpus >= least.gpus && memory_mb >= least.memory_mb &&
           jobs >= least.jobs && exclusive >= least.exclusive;
  }

  std::int64_t memory_mb = 0;
  std::int32_t cores = 0;
  std::int32_t gpus = 0;
  // How many there are; where it says what is free, how many less than none.
  std::int32_t jobs = 0;
  std::int32_t exclusive = 0;  // that have the node for themselves
};

/// What must be free for this need. More may be planned than there is; who needs none of that does
/// not mind.
Amount at_least(const cluster::Room& need);

/// Room that changes as the jobs that are there end. Shares of GPUs count as whole ones: it may
/// promise too much, never too little.
class Balance {
 public:
  Balance(const cluster::Node& node, const cluster::NodeUsage& now);
  void ends(const cluster::NodeShare& share, bool whole_node);
  [[nodiscard]] const Amount& free() const { return free_; }
  [[nodiscard]] cluster::Room room() const;

 private:
  Amount free_;
  std::int32_t all_gpus_ = 0;
};

class Timeline {
 public:
  struct Use {
    Span span;
    const cluster::NodeShare* share = nullptr;
    bool whole_node = false;
    bool running = false;  // it began before now
    JobId job = 0;         // of those that run
    bool lends_cores = false;
  };
  struct Piece {
    Time from = 0;
    Amount free;
  };
  Timeline() = default;  // not worked out yet
  /// Each piece up to the next one; the last for ever.
  explicit Timeline(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  [[nodiscard]] bool known() const { return !pieces_.empty(); }
  /// Not known any more; the memory is kept for the next one.
  void forget() { pieces_.clear(); }
  void work_out(const cluster::Node& node, const cluster::NodeUsage& usage, Time now,
                const std::vector<Use>& uses);

  /// A job that waits is to have so much in that time (with -1: no longer).
  void plan(const Span& span, const Amount& amount, std::int32_t times = 1);
  /// The first moment from `from` on at which so much is free for so long; 0 = never. Once that is
  /// seen to be after `far`, some moment between the two.
  [[nodiscard]] Time earliest(const Amount& least, Time from, Time seconds,
                              Time far = std::numeric_limits<Time>::max()) const;
  /// The next moment after `after` at which anything changes; 0 = none.
  [[nodiscard]] Time next_change(Time after) const;

 private:
  /// The piece that begins at this moment, made if need be; the first for all that is past.
  std::size_t piece_from(Time at);

  std::vector<Piece> pieces_;  // each up to the next one; the last for ever
};

}  // namespace berth::schedule
