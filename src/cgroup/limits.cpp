// What limits.h promises.
#include "cgroup/limits.h"

#include <algorithm>

namespace berth::cgroup {
namespace {

std::uint64_t share(std::uint64_t mb, double percent) {
  return static_cast<std::uint64_t>(static_cast<double>(mb) * 1048576.0 * percent / 100.0);
}

}  // namespace

void limit_memory(const MemoryRules& rules, std::uint64_t given_mb, std::uint64_t machine_mb,
                  Limits& limits) {
  if (given_mb == 0) return;
  const std::uint64_t least = rules.min_ram_mb * 1048576;
  std::uint64_t ram = share(given_mb, rules.allowed_ram_percent);
  ram = std::max(least, std::min(ram, share(machine_mb, rules.max_ram_percent)));
  if (rules.ram) limits.memory = ram;
  if (!rules.swap) return;
  limits.swap = std::min(share(given_mb, rules.allowed_swap_percent),
                         share(machine_mb, rules.max_swap_percent));
  limits.memory_and_swap = ram + *limits.swap;
}

std::uint64_t usual_process_limit(std::uint64_t tasks, std::uint64_t cpus,
                                  std::uint64_t machine_most) {
  constexpr std::uint64_t kLeast = 4096;
  constexpr std::uint64_t kEach = 512;
  const std::uint64_t room = std::max(kLeast, kEach * std::max(tasks, cpus));
  return std::max(std::min(room, machine_most / 4), 2 * tasks);
}

}  // namespace berth::cgroup
