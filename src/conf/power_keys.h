// The keys of slurm.conf that switch idle nodes off and on again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conf/lines.h"

namespace berth::conf {

/// SuspendTime of a partition or a node: never.
inline constexpr std::uint32_t kNeverSuspend = UINT32_MAX;

/// "nid[10-20]:4" of SuspendExcNodes: so many of these stay on; all of them where no count is
/// given.
struct KeptOn {
  std::vector<std::string> nodes;
  std::optional<std::uint32_t> count;
};

struct PowerKeys {
  std::string suspend_program;
  std::string resume_program;
  std::string resume_fail_program;
  std::uint32_t suspend_seconds = kNeverSuspend;  // SuspendTime
  std::uint32_t suspend_timeout_seconds = 30;
  std::uint32_t resume_timeout_seconds = 60;
  std::uint32_t suspend_rate = 60;  // nodes in a minute; 0 = any number
  std::uint32_t resume_rate = 300;
  std::vector<KeptOn> kept_on;              // SuspendExcNodes
  std::vector<std::string> kept_on_parts;   // SuspendExcParts
  std::vector<std::string> kept_on_states;  // SuspendExcStates, upper case

  /// Nodes can be switched: both programs are there.
  [[nodiscard]] bool enabled() const { return !suspend_program.empty() && !resume_program.empty(); }
};

/// Takes one global key. False when it is none of these.
bool apply_power_pair(const Pair& pair, PowerKeys& keys, Complaints& complaints);

/// Seconds, or INFINITE and -1 for never.
std::optional<Located<std::uint32_t>> suspend_seconds(const Pair& pair, Complaints& complaints);

}  // namespace berth::conf
