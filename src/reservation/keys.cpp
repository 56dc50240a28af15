#include "reservation/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/duration.h"
#include "text/number.h"
#include "text/when.h"
#include "text/words.h"

namespace berth::reservation {
namespace {

constexpr Time kYear = 365L * 24 * 3600;

std::unexpected<Error> bad(std::string_view key, std::string_view value, std::string hint = {}) {
  return fail(Code::bad_value, fmt::format("Invalid {} value: {}", key, value), std::move(hint));
}

struct Signed {
  bool moves = false;
  bool back = false;
  std::string_view rest;
};
Signed read_sign(std::string_view text) {
  if (text.starts_with('+')) return {true, false, text.substr(1)};
  if (text.starts_with('-')) return {true, true, text.substr(1)};
  return {false, false, text};
}

std::optional<Time> seconds_in(std::string_view text) {
  const auto limit = text::parse_time_limit(text);
  if (limit && limit->unlimited) return kYear;
  const auto seconds = text::parse_seconds(text);
  if (!seconds || *seconds > static_cast<std::uint64_t>(kYear)) return std::nullopt;
  return static_cast<Time>(*seconds);
}

Result<void> put_time(std::string_view key, std::string_view value, Time now,
                      std::optional<Time>& at, std::optional<Time>& moves) {
  const Signed given = read_sign(value);
  if (given.moves) {
    const auto seconds = seconds_in(given.rest);
    if (!seconds) return bad(key, value, "+ and - take minutes, or hours:minutes:seconds");
    moves = given.back ? -*seconds : *seconds;
    return {};
  }
  at = text::parse_when(value, now);
  if (!at) {
    return bad(key, value, "write now, now+2hours, 18:00 or 2026-11-30T08:00");
  }
  return {};
}

Result<void> put_duration(std::string_view value, Ask& out) {
  const Signed given = read_sign(value);
  const auto seconds = seconds_in(given.rest);
  if (!seconds || (*seconds == 0 && !given.moves)) {
    return bad("Duration", value,
               "write minutes, hours:minutes:seconds or days-hours, at most a year");
  }
  (given.moves ? out.duration_moves : out.duration) = given.back ? -*seconds : *seconds;
  return {};
}

Result<void> put_count(std::string_view key, std::string_view value,
                       std::optional<std::uint32_t>& to) {
  const auto count = text::parse_number(value, UINT32_MAX);
  if (!count || *count == 0) return bad(key, value, "one whole number");
  to = static_cast<std::uint32_t>(*count);
  return {};
}

Result<void> put_flags(std::string_view value, Ask& out) {
  const Signed given = read_sign(value);
  out.flags_replaced = !given.moves;
  for (std::string_view word : text::split(given.rest, ',')) {
    word = text::trim(word);
    if (word.empty()) continue;
    const Signed one = read_sign(word);
    const std::size_t eq = one.rest.find('=');
    const auto flag = flag_of(one.rest.substr(0, eq));
    if (!flag) {
      return bad("Flags", word, "the names of all flags are in docs/reservations.md");
    }
    if (one.moves) out.flags_replaced = false;
    if (eq != one.rest.npos) {
      const auto seconds = seconds_in(one.rest.substr(eq + 1));
      if (*flag != Flag::purge_comp || !seconds) return bad("Flags", word);
      out.purge_after = seconds;
    }
    out.flags.push_back({*flag, !(one.moves ? one.back : given.back)});
  }
  return {};
}

using Put = Result<void> (*)(const Key&, Time, Ask&);
template <std::optional<std::string> Ask::* Member>
Result<void> put_text(const Key& key, Time /*now*/, Ask& out) {
  out.*Member = key.second;
  return {};
}
Result<void> refuse_key(const Key& key, Time /*now*/, Ask& /*out*/) {
  return fail(Code::unsupported,
              fmt::format("{} of a reservation is not supported by berth", key.first),
              "leave it out");
}

struct KnownKey {
  std::string_view name;
  Put put;
};
constexpr std::array kKeys = {
    KnownKey{"Accounts", put_text<&Ask::accounts>},
    KnownKey{"AllowedPartitions", refuse_key},
    KnownKey{"BurstBuffer", refuse_key},
    KnownKey{"Comment", put_text<&Ask::comment>},
    KnownKey{"CoreCnt", [](const Key& key, Time,
                           Ask& out) { return put_count(key.first, key.second, out.core_count); }},
    KnownKey{"Duration",
             [](const Key& key, Time, Ask& out) { return put_duration(key.second, out); }},
    KnownKey{"EndTime",
             [](const Key& key, Time now, Ask& out) {
               return put_time(key.first, key.second, now, out.end, out.end_moves);
             }},
    KnownKey{"Features", put_text<&Ask::features>},
    KnownKey{"Flags", [](const Key& key, Time, Ask& out) { return put_flags(key.second, out); }},
    KnownKey{"Groups", put_text<&Ask::groups>},
    KnownKey{"Licenses", put_text<&Ask::licenses>},
    KnownKey{"MaxStartDelay",
             [](const Key& key, Time, Ask& out) -> Result<void> {
               out.max_start_delay = seconds_in(key.second);
               if (!out.max_start_delay) return bad(key.first, key.second, "minutes, or h:m:s");
               return {};
             }},
    KnownKey{"NodeCnt", [](const Key& key, Time,
                           Ask& out) { return put_count(key.first, key.second, out.node_count); }},
    KnownKey{"NodeCount",
             [](const Key& key, Time, Ask& out) {
               return put_count(key.first, key.second, out.node_count);
             }},
    KnownKey{"Nodes", put_text<&Ask::nodes>},
    KnownKey{"PartitionName", put_text<&Ask::partition>},
    KnownKey{"QOS", put_text<&Ask::qos>},
    KnownKey{"ReservationName", put_text<&Ask::name>},
    KnownKey{"Skip",
             [](const Key&, Time, Ask& out) -> Result<void> {
               out.skip = true;
               return {};
             }},
    KnownKey{"StartTime",
             [](const Key& key, Time now, Ask& out) {
               return put_time(key.first, key.second, now, out.start, out.start_moves);
             }},
    KnownKey{"TRES", put_text<&Ask::tres>},
    KnownKey{"TRESPerNode", put_text<&Ask::tres_per_node>},
    KnownKey{"Users", put_text<&Ask::users>},
    KnownKey{"Watts", refuse_key},
};

/// The whole name, or a beginning of it that means one key.
Result<const KnownKey*> find_key(std::string_view word) {
  constexpr std::size_t kLetters = 3;
  const std::string lower = text::to_lower(word);
  const KnownKey* found = nullptr;
  std::size_t matches = 0;
  for (const KnownKey& key : kKeys) {
    if (text::equal_ignoring_case(key.name, word)) return &key;
    if (lower.size() < kLetters || !text::to_lower(key.name).starts_with(lower)) continue;
    if (found == nullptr) found = &key;
    ++matches;
  }
  // "Node" could be Nodes or NodeCnt; both spellings of the count mean one key.
  if (found == nullptr || (matches > 1 && !lower.starts_with("nodec"))) {
    std::vector<std::string_view> names;
    for (const KnownKey& key : kKeys) names.push_back(key.name);
    const std::string near = text::nearest(word, names);
    return fail(Code::option_syntax, fmt::format("Unknown parameter {}", word),
                near.empty() ? "" : fmt::format("did you mean {}=?", near));
  }
  return found;
}

}  // namespace

Result<Ask> read_keys(std::span<const Key> keys, Time now) {
  Ask out;
  for (const Key& key : keys) {
    const auto known = find_key(key.first);
    if (!known) return pass(known.error());
    if (auto done = (*known)->put({std::string((*known)->name), key.second}, now, out); !done) {
      return pass(std::move(done.error()));
    }
  }
  return out;
}

Result<Tres> read_tres(std::string_view text) {
  Tres out;
  for (std::string_view word : text::split(text, ',')) {
    word = text::trim(word);
    if (word.empty()) continue;
    const std::size_t eq = word.rfind('=');
    const std::size_t at = eq == word.npos ? word.rfind(':') : eq;
    const auto count =
        at == word.npos ? std::nullopt : text::parse_number(word.substr(at + 1), UINT32_MAX);
    if (!count) return bad("TRES", word, "write cpu=4, node=2, gres/gpu=8 or license/cad=1");
    const std::string_view name = word.substr(0, at);
    if (name == "cpu") {
      out.cpus += *count;
    } else if (name == "node") {
      out.nodes += static_cast<std::uint32_t>(*count);
    } else if (name.starts_with("license/")) {
      out.licenses[std::string(name.substr(8))] += *count;
    } else if (name.starts_with("gres/")) {
      const std::string_view gres = name.substr(5);
      const std::size_t colon = gres.find(':');
      out.gres.push_back({std::string(gres.substr(0, colon)),
                          colon == gres.npos ? "" : std::string(gres.substr(colon + 1)), *count});
    } else {
      return fail(Code::invalid_tres, fmt::format("TRES {} cannot be reserved", name),
                  "cpu, node, gres/NAME and license/NAME can");
    }
  }
  return out;
}

}  // namespace berth::reservation
