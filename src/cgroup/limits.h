// From the memory that a job or step was given to its limits, by the rules of cgroup.conf.
#pragma once

#include <cstdint>

#include "cgroup/tree.h"

namespace berth::cgroup {

struct MemoryRules {
  bool ram = false;   // ConstrainRAMSpace
  bool swap = false;  // ConstrainSwapSpace
  double allowed_ram_percent = 100;
  double allowed_swap_percent = 0;
  double max_ram_percent = 100;
  double max_swap_percent = 100;
  std::uint64_t min_ram_mb = 30;
};

/// Sets the memory limits of a share. 0 MB given = no limit.
void limit_memory(const MemoryRules& rules, std::uint64_t given_mb, std::uint64_t machine_mb,
                  Limits& limits);

/// How many processes and threads a step may have where nobody says it: enough for any program on
/// its CPUs, and at most a quarter of what the machine can number, so that a step that goes on
/// starting them leaves room for others.
std::uint64_t usual_process_limit(std::uint64_t tasks, std::uint64_t cpus,
                                  std::uint64_t machine_most);

}  // namespace berth::cgroup
