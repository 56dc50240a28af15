// What the keys of a reservation do to it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reservation/keys.h"
#include "text/licenses.h"
#include "text/words.h"

namespace berth::reservation {
namespace {

std::optional<std::string_view> conflict(const Flags& flags) {
  constexpr std::array kRecurring = {Flag::daily, Flag::hourly, Flag::weekday, Flag::weekend,
                                     Flag::weekly};
  if (std::ranges::count_if(kRecurring, [&](Flag flag) { return flags.has(flag); }) > 1) {
    return "only one of HOURLY, DAILY, WEEKDAY, WEEKEND and WEEKLY";
  }
  if (flags.has(Flag::time_float) &&
      std::ranges::any_of(kRecurring, [&](Flag flag) { return flags.has(flag); })) {
    return "TIME_FLOAT does not recur";
  }
  if (flags.has(Flag::static_alloc) &&
      (flags.has(Flag::replace) || flags.has(Flag::replace_down))) {
    return "STATIC_ALLOC keeps its nodes, REPLACE and REPLACE_DOWN do not";
  }
  return std::nullopt;
}

Result<void> apply_time(const Ask& ask, bool creates, Time now, Reservation& out) {
  const bool floats = out.flags.has(Flag::time_float);
  const Time base = floats ? now : 0;
  Time start = base + out.start;
  Time end = base + out.end;
  const Time length = end - start;
  if (ask.start) start = *ask.start;
  if (ask.start_moves) start += *ask.start_moves;
  if (ask.end) {
    end = *ask.end;
  } else if (ask.end_moves) {
    end += *ask.end_moves;
  } else if (ask.duration) {
    end = start + *ask.duration;
  } else if (ask.duration_moves) {
    end = start + length + *ask.duration_moves;
  } else if (creates) {
    return fail(Code::bad_value, "Invalid time specified",
                "say how long: Duration=2:00:00, or EndTime=");
  } else if (ask.start || ask.start_moves) {
    end = start + length;
  }
  if (creates && !ask.start) {
    return fail(Code::bad_value, "Invalid time specified", "say when: StartTime=now, or a time");
  }
  const bool past = start < now && (creates || ask.start || ask.start_moves);
  if (past && !out.flags.has(Flag::force_start)) {
    return fail(Code::bad_value, "Invalid time specified",
                "StartTime lies in the past; Flags=FORCE_START allows it");
  }
  if (end <= start || (end <= now && (creates || ask.end || ask.duration))) {
    return fail(Code::bad_value, "Invalid time specified", "it would end before it starts, or now");
  }
  out.start = start - base;
  out.end = end - base;
  return {};
}

}  // namespace

Result<Names> read_names(std::string_view key, std::string_view text, const Names& before) {
  Names out;
  bool some = false;
  bool others = false;
  bool added = false;
  for (std::string_view word : text::split(text, ',')) {
    word = text::trim(word);
    const bool back = word.starts_with('-');
    const bool adds = word.starts_with('+');
    const std::string_view name = word.substr(back || adds ? 1 : 0);
    if (name.empty()) continue;
    (back ? others : some) = true;
    added = added || adds;
    out.names.emplace_back(name);
  }
  if (some && others) {
    return fail(Code::bad_value, fmt::format("Invalid {} value: {}", key, text),
                "either names, or names with - before each of them: all but these");
  }
  // Users+=a adds to those there are; Users-=a takes away from them.
  if (added || (others && !before.empty() && !before.except)) {
    Names merged = before;
    for (const std::string& name : out.names) {
      std::erase(merged.names, name);
      if (added) merged.names.push_back(name);
    }
    return merged;
  }
  out.except = others;
  return out;
}

Result<void> apply(const Ask& ask, bool creates, Time now, Reservation& out) {
  if (ask.flags_replaced) {
    const Flags before = out.flags;
    out.flags = {};
    // How its nodes were found stays.
    for (const Flag flag : {Flag::spec_nodes, Flag::all_nodes})
      out.flags.put(flag, before.has(flag));
  }
  for (const Ask::FlagChange& change : ask.flags) out.flags.put(change.flag, change.on);
  if (const auto words = conflict(out.flags)) {
    return fail(Code::bad_value, "Invalid Flags value", std::string(*words));
  }
  constexpr Time kPurgeAfter = 300;
  if (ask.purge_after) out.purge_after = *ask.purge_after;
  if (out.flags.has(Flag::purge_comp) && out.purge_after == 0) out.purge_after = kPurgeAfter;
  if (auto done = apply_time(ask, creates, now, out); !done) return done;
  struct List {
    std::string_view key;
    const std::optional<std::string>& text;
    Names& names;
  };
  for (const List& list :
       {List{"Users", ask.users, out.users}, List{"Groups", ask.groups, out.groups},
        List{"Accounts", ask.accounts, out.accounts}, List{"QOS", ask.qos, out.qos}}) {
    if (!list.text) continue;
    auto names = read_names(list.key, *list.text, list.names);
    if (!names) return pass(std::move(names.error()));
    list.names = std::move(*names);
  }
  if (!out.users.empty() && !out.groups.empty()) {
    return fail(Code::conflict, "Users and Groups cannot both be given", "use one of them");
  }
  if (out.users.empty() && out.groups.empty() && out.accounts.empty() && out.qos.empty()) {
    return fail(Code::bad_value, "Reservation request lacks users, accounts, or QOS",
                "say who may use it: Users=, Groups=, Accounts= or QOS=");
  }
  if (ask.max_start_delay) out.max_start_delay = *ask.max_start_delay;
  if (ask.comment) out.comment = *ask.comment;
  if (ask.licenses) {
    auto read = text::parse_licenses(*ask.licenses);
    if (!read) return pass(std::move(read.error()));
    out.licenses = std::move(*read);
  }
  if (ask.partition) out.partition = *ask.partition;
  if (ask.features) out.features = *ask.features;
  return {};
}

}  // namespace berth::reservation
