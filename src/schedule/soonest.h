// Nodes by the moment from which each could be had at the earliest, for all needs of one kind. A
// search takes them in that order and ends when those that are left come too late, so that it costs
// what the answer is made of, not the number of nodes.
//
// Within a walk, jobs start and places are given away: moments only grow. So what one search has
// found out holds for the next one, as "not before". Where a plan is taken back, again() says so.
#pragma once

#include <compare>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "schedule/calendar.h"

namespace berth::schedule {

/// What all jobs of one kind need at least of a node.
struct NeedKind {
  std::uint32_t gpus = 0;
  std::uint32_t cores = 0;
  std::uint32_t idle = 0;
  Time seconds = 0;
  const Reservation* inside = nullptr;  // the reservation that they run in
  friend auto operator<=>(const NeedKind&, const NeedKind&) = default;

  [[nodiscard]] cluster::Room room() const { return {0, cores, gpus, idle}; }
};

/// The kind of a need; many needs are of one kind.
NeedKind kind_of(const cluster::Room& need, Time seconds, const Reservation* inside);

class Soonest {
 public:
  static constexpr Time kNever = std::numeric_limits<Time>::max();

  /// `openings` stay as they are while this is in use; nodes that have room now, or may look
  /// different from how these tell, are put in with again().
  Soonest(const NeedKind& kind, std::span<const Opening> openings, std::size_t nodes);

  /// The node may be had from this moment on, whatever was known.
  void again(NodeIndex node, Time from);
  /// From when on the next node can be had, as far as the calendar knows; kNever: there is no more.
  Time next(Calendar& calendar);
  /// That node, which next() does not tell any more.
  NodeIndex take();

  /// While it lives, nodes are taken; then they are there for the next search.
  class Search {
   public:
    explicit Search(Soonest* nodes) : nodes_(nodes) {}
    ~Search() {
      if (nodes_ != nullptr) nodes_->put_back();
    }
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;

   private:
    Soonest* nodes_;
  };

 private:
  void put_back();
  using From = std::pair<Time, NodeIndex>;
  void push(const From& from);
  From pop();
  /// Openings of before the first node that is known.
  void open_up();

  cluster::Room room_;
  Amount least_;
  Time seconds_;
  std::span<const Opening> openings_;
  std::size_t opened_ = 0;
  std::vector<Time> from_;   // by node; 0 = not met yet, -1 = taken
  std::vector<From> heap_;   // the earliest first; true when from_ says the same
  std::vector<From> taken_;  // by the search that is going on
};

}  // namespace berth::schedule
