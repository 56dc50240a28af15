// A reservation: nodes, or cores and devices of them, that are kept for some users during some
// time. A value with the rules that need nothing but itself: when it is in force, who may use it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/usage.h"

namespace berth::reservation {

/// Unix seconds.
using Time = std::int64_t;

/// From `from` up to but without `until`.
struct Window {
  Time from = 0;
  Time until = 0;
  [[nodiscard]] bool meets(const Window& other) const {
    return from < other.until && other.from < until;
  }
  friend bool operator==(const Window&, const Window&) = default;
};

/// Names as Flags= writes them are in flag_words().
enum class Flag : std::uint32_t {
  all_nodes = 1U << 0U,
  any_nodes = 1U << 1U,
  daily = 1U << 2U,
  flex = 1U << 3U,
  force_start = 1U << 4U,
  hourly = 1U << 5U,
  ignore_jobs = 1U << 6U,
  license_only = 1U << 7U,
  magnetic = 1U << 8U,
  maint = 1U << 9U,
  no_hold_jobs_after = 1U << 10U,
  overlap = 1U << 11U,
  part_nodes = 1U << 12U,
  purge_comp = 1U << 13U,
  replace = 1U << 14U,
  replace_down = 1U << 15U,
  spec_nodes = 1U << 16U,
  static_alloc = 1U << 17U,
  time_float = 1U << 18U,
  user_delete = 1U << 19U,
  weekday = 1U << 20U,
  weekend = 1U << 21U,
  weekly = 1U << 22U,
};

class Flags {
 public:
  Flags() = default;
  explicit Flags(std::uint32_t bits) : bits_(bits) {}
  [[nodiscard]] bool has(Flag flag) const {
    return (bits_ & static_cast<std::uint32_t>(flag)) != 0;
  }
  void put(Flag flag, bool on = true) {
    const auto bit = static_cast<std::uint32_t>(flag);
    bits_ = on ? bits_ | bit : bits_ & ~bit;
  }
  [[nodiscard]] std::uint32_t bits() const { return bits_; }
  friend bool operator==(const Flags&, const Flags&) = default;

 private:
  std::uint32_t bits_ = 0;
};
/// The flag a word means; case does not matter.
std::optional<Flag> flag_of(std::string_view word);
/// "MAINT", "SPEC_NODES", … in the order of the alphabet.
std::vector<std::string> flag_words(const Flags& flags);

/// "a,b": these; "-a,-b": all but these. Empty: nothing is asked of it.
struct Names {
  std::vector<std::string> names;
  bool except = false;
  [[nodiscard]] bool empty() const { return names.empty(); }
  /// As it was written.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool admits(std::string_view name) const;
};

struct Reservation {
  std::string name;
  std::uint32_t number = 0;  // grows with each one that is made
  /// Of the occurrence that runs or comes next. With TIME_FLOAT `start` is seconds after now.
  Time start = 0;
  Time end = 0;
  Flags flags;
  std::string partition;
  std::string features;
  std::uint32_t node_count = 0;  // NodeCnt, CoreCnt and TRES as asked for; 0 and "" = not asked for
  std::uint32_t core_count = 0;
  std::string tres;
  std::string tres_per_node;
  /// Its nodes by index, with the cores and devices that it keeps of each; `whole_nodes`: all.
  cluster::Allocation allocation;
  std::map<std::string, std::uint64_t> licenses;
  Names users;
  Names groups;
  Names accounts;
  Names qos;
  std::set<std::uint32_t> uids;        // of `users`
  std::set<std::uint32_t> group_gids;  // of `groups`
  std::set<std::uint32_t> group_uids;  // members of them
  std::string comment;
  /// MaxStartDelay: its jobs may wait so long for jobs of others, which may use it therefore.
  Time max_start_delay = 0;
  Time purge_after = 0;  // PURGE_COMP: unused for so long
  Time idle_since = 0;   // it is in force, and no job of it was seen since; 0 = not idle
  std::uint32_t created_by = 0;

  [[nodiscard]] bool recurs() const;
  /// The present occurrence.
  [[nodiscard]] Window window(Time now) const;
  [[nodiscard]] bool active(Time now) const;
  /// The first occurrence that has any time in common with this one.
  [[nodiscard]] std::optional<Window> first_meeting(const Window& span, Time now) const;
  /// It keeps the node, or a part of it.
  [[nodiscard]] const cluster::NodeShare* share_of(cluster::NodeIndex node) const;
  /// Jobs of it may be on any node.
  [[nodiscard]] bool on_any_node() const {
    return flags.has(Flag::flex) || flags.has(Flag::any_nodes) || flags.has(Flag::license_only);
  }
};

/// The occurrence after this one, of those that recur.
Window next_occurrence(const Flags& flags, const Window& window);

/// Who wants to use it.
struct User {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string_view account;
  std::string_view qos;
  bool privileged = false;
};
bool may_use(const Reservation& reservation, const User& user);

/// A job in `inside` (nullptr: in none) has to keep clear of `other` on this node.
bool keeps_out(const Reservation& other, const Reservation* inside, cluster::NodeIndex node);

}  // namespace berth::reservation
