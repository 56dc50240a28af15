// The queue by groups of equal jobs: same request, same time limit. What one of a group cannot
// have, those behind it cannot have either.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>

#include "job/state.h"

namespace berth::schedule {

struct GroupKey {
  std::uint64_t shape = 0;
  std::uint64_t minutes = 0;
  std::uint32_t view = 0;  // Job::view
  friend bool operator==(const GroupKey&, const GroupKey&) = default;
};

struct GroupKeyHash {
  std::size_t operator()(const GroupKey& key) const {
    return static_cast<std::size_t>(
        key.shape ^ ((key.minutes + (std::uint64_t{key.view} << 40U)) * 0x9e3779b97f4a7c15ULL));
  }
};

GroupKey group_of(const job::Job& job);

/// Jobs that left the queue are found out when their turn comes (State::key_of).
class Groups {
 public:
  using Members = std::set<job::QueueKey>;

  void add(const job::Job& job, const job::QueueKey& key) {
    Members& members = groups_[group_of(job)];
    members.insert(members.end(), key);  // mostly the last
  }
  void clear() { groups_.clear(); }
  /// The first member from `from` on (after it, when `after`) that still stands in the queue at its
  /// place; those that do not are dropped.
  std::optional<job::QueueKey> first(const job::State& state, const GroupKey& group);
  std::optional<job::QueueKey> next(const job::State& state, const GroupKey& group,
                                    const job::QueueKey& after);
  [[nodiscard]] const std::unordered_map<GroupKey, Members, GroupKeyHash>& all() const {
    return groups_;
  }
  /// Groups without members are dropped.
  void tidy();

 private:
  static std::optional<job::QueueKey> living(const job::State& state, Members& members,
                                             Members::iterator at, const GroupKey& group);
  std::unordered_map<GroupKey, Members, GroupKeyHash> groups_;
};

}  // namespace berth::schedule
