#include "reservation/reservation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "text/words.h"

namespace berth::reservation {
namespace {

constexpr std::array<std::pair<std::string_view, Flag>, 23> kFlags = {{
    {"ALL_NODES", Flag::all_nodes},
    {"ANY_NODES", Flag::any_nodes},
    {"DAILY", Flag::daily},
    {"FLEX", Flag::flex},
    {"FORCE_START", Flag::force_start},
    {"HOURLY", Flag::hourly},
    {"IGNORE_JOBS", Flag::ignore_jobs},
    {"LICENSE_ONLY", Flag::license_only},
    {"MAGNETIC", Flag::magnetic},
    {"MAINT", Flag::maint},
    {"NO_HOLD_JOBS_AFTER", Flag::no_hold_jobs_after},
    {"OVERLAP", Flag::overlap},
    {"PART_NODES", Flag::part_nodes},
    {"PURGE_COMP", Flag::purge_comp},
    {"REPLACE", Flag::replace},
    {"REPLACE_DOWN", Flag::replace_down},
    {"SPEC_NODES", Flag::spec_nodes},
    {"STATIC_ALLOC", Flag::static_alloc},
    {"TIME_FLOAT", Flag::time_float},
    {"USER_DELETE", Flag::user_delete},
    {"WEEKDAY", Flag::weekday},
    {"WEEKEND", Flag::weekend},
    {"WEEKLY", Flag::weekly},
}};

constexpr Time kHour = 3600;

/// The same time of day so many days later, also where clocks are changed in between.
Time days_later(Time start, int days) {
  const auto clock = static_cast<std::time_t>(start);
  std::tm day{};
  localtime_r(&clock, &day);
  day.tm_mday += days;
  day.tm_isdst = -1;
  return static_cast<Time>(std::mktime(&day));
}

bool is_weekend(Time when) {
  const auto clock = static_cast<std::time_t>(when);
  std::tm day{};
  localtime_r(&clock, &day);
  return day.tm_wday == 0 || day.tm_wday == 6;
}

}  // namespace

std::optional<Flag> flag_of(std::string_view word) {
  for (const auto& [name, flag] : kFlags) {
    if (text::equal_ignoring_case(name, word)) return flag;
  }
  return std::nullopt;
}

std::vector<std::string> flag_words(const Flags& flags) {
  std::vector<std::string> out;
  for (const auto& [name, flag] : kFlags) {
    if (flags.has(flag)) out.emplace_back(name);
  }
  return out;
}

std::string Names::text() const {
  return fmt::format("{}{}", except && !names.empty() ? "-" : "",
                     fmt::join(names, except ? ",-" : ","));
}

bool Names::admits(std::string_view name) const {
  if (names.empty()) return true;
  return (std::ranges::find(names, name) != names.end()) != except;
}

bool Reservation::recurs() const {
  return flags.has(Flag::daily) || flags.has(Flag::hourly) || flags.has(Flag::weekday) ||
         flags.has(Flag::weekend) || flags.has(Flag::weekly);
}

Window Reservation::window(Time now) const {
  if (flags.has(Flag::time_float)) return {now + start, now + end};
  return {start, end};
}

bool Reservation::active(Time now) const {
  const Window at = window(now);
  return at.from <= now && now < at.until;
}

std::optional<Window> Reservation::first_meeting(const Window& span, Time now) const {
  constexpr int kMost = 10000;
  Window at = window(now);
  if (!recurs()) return at.meets(span) ? std::optional(at) : std::nullopt;
  for (int i = 0; i < kMost && at.from < span.until; ++i) {
    if (at.meets(span)) return at;
    at = next_occurrence(flags, at);
  }
  return std::nullopt;
}

const cluster::NodeShare* Reservation::share_of(cluster::NodeIndex node) const {
  const auto at = std::ranges::lower_bound(allocation.nodes, node, {}, &cluster::NodeShare::node);
  return at == allocation.nodes.end() || at->node != node ? nullptr : &*at;
}

Window next_occurrence(const Flags& flags, const Window& window) {
  Time start = window.from;
  if (flags.has(Flag::hourly)) {
    start += kHour;
  } else if (flags.has(Flag::weekly)) {
    start = days_later(start, 7);
  } else {
    start = days_later(start, 1);
    for (int i = 0; i < 7; ++i) {
      const bool weekend = is_weekend(start);
      if (flags.has(Flag::weekday) ? !weekend : !flags.has(Flag::weekend) || weekend) break;
      start = days_later(start, 1);
    }
  }
  return {start, start + (window.until - window.from)};
}

bool may_use(const Reservation& reservation, const User& user) {
  if (user.privileged) return true;
  if (!reservation.users.empty() &&
      reservation.uids.contains(user.uid) == reservation.users.except) {
    return false;
  }
  if (!reservation.groups.empty()) {
    const bool member =
        reservation.group_gids.contains(user.gid) || reservation.group_uids.contains(user.uid);
    if (member == reservation.groups.except) return false;
  }
  return reservation.accounts.admits(user.account) && reservation.qos.admits(user.qos);
}

bool keeps_out(const Reservation& other, const Reservation* inside, cluster::NodeIndex node) {
  if (inside == nullptr) return true;
  if (other.name == inside->name) return false;
  if (inside->share_of(node) == nullptr) return true;
  // Two that have a node in common were allowed to: they share it. Maintenance does not.
  return other.flags.has(Flag::maint) && !inside->flags.has(Flag::maint);
}

}  // namespace berth::reservation
