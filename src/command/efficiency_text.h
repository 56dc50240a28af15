// What a job made of what it had, in words and as JSON: the values of `berth efficiency`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command/json_text.h"
#include "wire/info.pb.h"

namespace berth::command {

struct Efficiency {
  std::string job;  // "12", "12_3"
  std::string name, user, state, nodes;
  bool runs = false;
  std::int64_t seconds = 0;  // it has had its resources
  std::uint32_t cpus = 0;
  /// Of all steps that have ended, and of `cpus` for `seconds`; unset: nothing ran that long.
  double cpu_seconds = 0;
  std::optional<double> cpu_percent;
  std::uint64_t task_memory_most_kb = 0;  // of the largest task
  std::string memory;                     // allocated: "64G"; "" = not known
  std::vector<wire::GpuUse> gpus;         // by node and index
  std::vector<std::string> hints;
};

/// `live`: what the controller knows of it now, where it still knows it.
Efficiency efficiency_of(const wire::HistoryJob& job, const wire::JobInfo* live, std::int64_t now);

std::string efficiency_text(const Efficiency& job);
void append_efficiency_json(JsonText& json, const Efficiency& job);

}  // namespace berth::command
