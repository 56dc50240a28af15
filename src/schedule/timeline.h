// What is free on one node as time goes on, in numbers: running jobs end, planned ones begin and
// end.
#pragma once

#include <utility>
#include <vector>

#include "cluster/usage.h"
#include "job/types.h"

namespace berth::schedule {

using cluster::NodeIndex;
using job::JobId;
using job::Time;

/// A stretch of time, from `from` up to but without `until`.
struct Span {
  Time from = 0;
  Time until = 0;
  [[nodiscard]] bool meets(const Span& other) const {
    return from < other.until && other.from < until;
  }
};

/// Room that changes as jobs begin and end. Shares of GPUs count as whole ones: it may promise too
/// much, never too little.
class Balance {
 public:
  Balance(const cluster::Node& node, const cluster::NodeUsage& now);
  void begins(const cluster::NodeShare& share, bool whole_node) { add(share, whole_node, -1); }
  void ends(const cluster::NodeShare& share, bool whole_node) { add(share, whole_node, 1); }
  [[nodiscard]] cluster::Room room() const;

 private:
  void add(const cluster::NodeShare& share, bool whole_node, std::int64_t sign);

  std::int64_t memory_mb_ = 0;
  std::int64_t cores_ = 0;
  std::int64_t gpus_ = 0;
  std::int64_t all_gpus_ = 0;
  std::int64_t jobs_ = 0;
  std::int64_t exclusive_ = 0;  // jobs that have the node for themselves
};

class Timeline {
 public:
  struct Use {
    Span span;
    const cluster::NodeShare* share = nullptr;
    bool whole_node = false;
    bool running = false;  // it began before now
  };
  struct Piece {
    Time from = 0;
    cluster::Room room;
  };
  Timeline(const cluster::Node& node, const cluster::NodeUsage& usage, Time now,
           const std::vector<Use>& uses);
  /// Each piece up to the next one; the last for ever.
  explicit Timeline(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}

  /// The first moment from `from` on at which so much is free for so long; 0 = never.
  [[nodiscard]] Time earliest(const cluster::Room& need, Time from, Time seconds) const;
  /// The next moment after `after` at which anything changes; 0 = none.
  [[nodiscard]] Time next_change(Time after) const;

 private:
  std::vector<Piece> pieces_;  // each up to the next one; the last for ever
};

}  // namespace berth::schedule
