// Keys of `scontrol create` and `update` of a reservation, as values.
#pragma once

#include <span>
#include <utility>

#include "base/result.h"
#include "reservation/reservation.h"

namespace berth::reservation {

/// One key as it was typed; "Key+=v" and "Key-=v" come as "+v" and "-v".
using Key = std::pair<std::string, std::string>;

/// What was given; unset = not given.
struct Ask {
  std::optional<std::string> name;
  std::optional<Time> start;
  std::optional<Time> start_moves;  // StartTime+=, in seconds
  std::optional<Time> end;
  std::optional<Time> end_moves;
  std::optional<Time> duration;
  std::optional<Time> duration_moves;
  std::optional<std::string> nodes;  // a list, ALL, or "+list", "-list"
  std::optional<std::uint32_t> node_count;
  std::optional<std::uint32_t> core_count;
  std::optional<std::string> tres;
  std::optional<std::string> tres_per_node;
  std::optional<std::string> licenses;
  std::optional<std::string> partition;
  std::optional<std::string> users, groups, accounts, qos;
  std::optional<std::string> features;
  std::optional<std::string> comment;
  struct FlagChange {
    Flag flag;
    bool on;
  };
  std::vector<FlagChange> flags;
  bool flags_replaced = false;  // Flags= without + or -
  std::optional<Time> purge_after;
  std::optional<Time> max_start_delay;
  bool skip = false;

  /// It says what to reserve.
  [[nodiscard]] bool resources() const {
    return nodes || node_count || core_count || tres || tres_per_node;
  }
};

Result<Ask> read_keys(std::span<const Key> keys, Time now);

/// "a,b", "-a,-b", or for a list that exists "+a" and "-a" from `Users+=a`.
Result<Names> read_names(std::string_view key, std::string_view text, const Names& before);

/// Time, flags, names and words of `ask` put into `out`. What it reserves, and who the users are,
/// is found by the caller.
Result<void> apply(const Ask& ask, bool creates, Time now, Reservation& out);

/// "cpu=4,gres/gpu:a100=2,node=1,license/cad=1".
struct Tres {
  std::uint64_t cpus = 0;
  std::uint32_t nodes = 0;
  struct Gres {
    std::string name;
    std::string type;
    std::uint64_t count = 0;
  };
  std::vector<Gres> gres;
  std::map<std::string, std::uint64_t> licenses;
};
Result<Tres> read_tres(std::string_view text);

}  // namespace berth::reservation
