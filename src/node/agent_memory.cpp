// The agent's part of watching the memory of GPUs that jobs share: who hears of it, and who is
// ended.
#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "node/agent.h"
#include "node/gpu_holder.h"
#include "wire/step_ids.h"

namespace berth::node {
namespace {

std::string given_words(const GpuMemoryUse& use) {
  return use.asked_for ? fmt::format("{} MiB were asked for (--gpu-mem)", use.given_mb)
                       : fmt::format("its shards stand for {} MiB", use.given_mb);
}

}  // namespace

GpuMeter::Owns Agent::see_gpu_memory(const GpuRound& round,
                                     const std::vector<Jobs::Holder>& holders) {
  gpu_memory_.round(round, holders);
  GpuMeter::Owns owns;
  for (const auto& [key, use] : gpu_memory_.uses()) {
    owns[key] = {use.used_mb, use.given_mb};
    if (use.over()) over_gpu_memory(key, use, holders);
  }
  return owns;
}

void Agent::over_gpu_memory(const GpuMemory::Key& key, const GpuMemoryUse& use,
                            const std::vector<Jobs::Holder>& holders) {
  const auto& [job, gpu] = key;
  if (const auto untold = gpu_memory_.untold(key, holders); !untold.empty()) {
    name_over_user(key, use, untold, holders);
  }
  if (!gpu_parameters_.ends_over_users) return;
  const auto greedy = gpu_memory_.take_greedy(key);
  if (!greedy) return;
  log_.error("step {}.{} is ended: its job has {} MiB of GPU {}, {}", greedy->key.job,
             step::step_name(greedy->key.step), use.used_mb, gpu, given_words(use));
  steps_.say(*greedy, fmt::format("it is ended for the memory that it has of GPU {} of node {}",
                                  gpu, job.node));
  steps_.end(*greedy, std::string(wire::kGpuMemoryCause), false);
}

void Agent::name_over_user(const GpuMemory::Key& key, const GpuMemoryUse& use,
                           const std::vector<NodeJob>& untold,
                           const std::vector<Jobs::Holder>& holders) {
  const auto& [job, gpu] = key;
  const auto holder = std::ranges::find(holders, job, &Jobs::Holder::at);
  const std::string user = holder == holders.end() ? std::string() : holder->user;
  const std::string step =
      fmt::format("{}.{}", use.step.key.job, step::step_name(use.step.key.step));
  // Others read it.
  const std::string command = printable(look_at_holder(use.pid).command);
  for (const NodeJob& to : untold) {
    const std::vector<NodeStep> hear = steps_.running(to.node, to.job, to.attempt);
    if (hear.empty()) continue;  // it has not begun, or nothing of it runs: it is told later
    gpu_memory_.told(key, to);
    std::string line = fmt::format(
        "GPU {} of node {} is shared, and job {} of {} has {} MiB of its memory, more "
        "than its part ({}): what is allocated here may fail for it",
        gpu, job.node, job.job, user, use.used_mb, given_words(use));
    if (to == job) {
      line = fmt::format(
          "GPU {} of node {} is shared, and this job has {} MiB of its memory (most "
          "of it step {}, pid {}, {}): {}",
          gpu, job.node, use.used_mb, step, use.pid, command, given_words(use));
      log_.error("step {} of {} has {} MiB of GPU {} (pid {}, {}), {}", step, user, use.used_mb,
                 gpu, use.pid, command, given_words(use));
    }
    for (const NodeStep& one : hear) steps_.say(one, line);
  }
}

}  // namespace berth::node
