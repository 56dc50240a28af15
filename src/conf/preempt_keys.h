// The Preempt* keys of slurm.conf, for the cluster and on PartitionName lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "conf/lines.h"

namespace berth::conf {

struct PartitionRules;

/// PreemptMode= as written, word by word.
struct PreemptModeWords {
  std::string mode = "OFF";  // OFF, CANCEL, REQUEUE, SUSPEND
  bool gang = false;
  bool priority = false;  // only of lower priority
  bool within = false;
};

struct PreemptKeys {
  std::string type = "preempt/none";
  std::string mode_as_written = "OFF";
  PreemptModeWords mode;
  Location mode_at;
  /// PreemptExemptTime; unset = none.
  std::optional<std::uint32_t> exempt_seconds;
  std::map<std::string, std::string, std::less<>> parameters;  // PreemptParameters, lower case
  std::string parameters_as_written;
};

/// What a PreemptMode= says; nullopt when it is none.
std::optional<PreemptModeWords> preempt_mode(const Pair& pair, Complaints& complaints);

/// Takes one global key. False when it is none of these.
bool apply_preempt_pair(const Pair& pair, PreemptKeys& keys, Complaints& complaints);

/// What the keys say together, once all of the file is read. `partition` has its own PreemptMode.
void check_preempt(const PreemptKeys& keys, Complaints& complaints);
void check_preempt_of_partition(const PreemptKeys& keys, const std::string& partition,
                                const PartitionRules& rules, Complaints& complaints);

}  // namespace berth::conf
