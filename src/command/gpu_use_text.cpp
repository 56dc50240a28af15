#include "command/gpu_use_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "command/usage_text.h"

namespace berth::command {

double mean_busy(const wire::GpuUse& use) {
  return use.rounds() == 0 ? 0 : static_cast<double>(use.busy_sum()) / use.rounds();
}

void append_gpu_busy(std::string& out, const GpuUses& uses) {
  if (uses.empty()) {
    out += "N/A";
    return;
  }
  double sum = 0;
  for (const wire::GpuUse& use : uses) sum += mean_busy(use);
  fmt::format_to(std::back_inserter(out), "{:.0f}%", sum / uses.size());
}

void append_gpu_memory(std::string& out, const GpuUses& uses, bool convert) {
  std::uint64_t most = 0;
  for (const wire::GpuUse& use : uses) most = std::max(most, use.memory_most_mb());
  if (uses.empty()) {
    out += "N/A";
  } else {
    append_memory(out, most, convert);
  }
}

void append_gpu_idle(std::string& out, const GpuUses& uses) {
  if (uses.empty()) {
    out += "N/A";
    return;
  }
  const auto by_idle = [](const wire::GpuUse& a, const wire::GpuUse& b) {
    return a.idle_rounds() < b.idle_rounds();
  };
  append_clock(out, std::ranges::min_element(uses, by_idle)->idle_rounds());
}

void append_gpu_power(std::string& out, const GpuUses& uses) {
  std::uint64_t milliwatts = 0;
  for (const wire::GpuUse& use : uses) milliwatts += use.power_now_mw();
  if (milliwatts == 0) {
    out += "N/A";
    return;
  }
  fmt::format_to(std::back_inserter(out), "{}W", (milliwatts + 500) / 1000);
}

void append_gpu_energy(std::string& out, const GpuUses& uses, bool convert) {
  std::uint64_t millijoules = 0;
  for (const wire::GpuUse& use : uses) millijoules += use.energy_mj();
  if (millijoules == 0) {
    out += "N/A";
  } else {
    append_joules(out, millijoules / 1000, convert);
  }
}

}  // namespace berth::command
