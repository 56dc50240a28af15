#include "node/gpu_memory.h"

#include <algorithm>

namespace berth::node {

std::map<NodeStep, GpuMemory::Sum> GpuMemory::steps_on(const GpuRound& round,
                                                       std::size_t gpu) const {
  std::map<NodeStep, Sum> out;
  for (const survey::Process& process : round.processes) {
    if (!gpus_[gpu].has(process) || process.memory_mb.value_or(0) == 0) continue;
    const std::optional<NodeStep> step = owner_(process.pid);
    if (!step) continue;
    Sum& sum = out[*step];
    sum.mb += *process.memory_mb;
    sum.largest = std::max(sum.largest, {*process.memory_mb, process.pid});
  }
  return out;
}

void GpuMemory::round(const GpuRound& round, const std::vector<Jobs::Holder>& holders) {
  std::map<std::size_t, std::map<NodeStep, Sum>> by_gpu;
  std::map<Key, GpuMemoryUse> now;
  for (const Jobs::Holder& holder : holders) {
    for (const auto& [gpu, part] : holder.parts) {
      if (gpu >= gpus_.size() || !gpus_[gpu].number) continue;
      if (!by_gpu.contains(gpu)) by_gpu[gpu] = steps_on(round, gpu);
      GpuMemoryUse& use = now[{holder.at, gpu}];
      use.given_mb = part.of(gpus_[gpu].memory_mb);
      use.asked_for = part.in_megabytes;
      std::uint64_t most = 0;
      for (const auto& [step, sum] : by_gpu[gpu]) {
        if (NodeJob{step.node, step.key.job, step.key.attempt} != holder.at) continue;
        use.used_mb += sum.mb;
        if (sum.mb <= most) continue;
        most = sum.mb;
        use.step = step;
        use.pid = sum.largest.second;
      }
      const auto before = uses_.find({holder.at, gpu});
      if (use.over()) use.looks_over = 1 + (before == uses_.end() ? 0 : before->second.looks_over);
    }
  }
  uses_ = std::move(now);
}

}  // namespace berth::node
