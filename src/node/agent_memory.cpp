// The agent's part of watching the memory of GPUs that jobs share: who hears of it, and who is
// ended.
#include <fmt/format.h>

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
  std::erase_if(told_over_, [&](const auto& key) { return !owns.contains(key); });
  return owns;
}

void Agent::over_gpu_memory(const GpuMemory::Key& key, const GpuMemoryUse& use,
                            const std::vector<Jobs::Holder>& holders) {
  const auto& [job, gpu] = key;
  // What is freed and allocated anew may be counted twice in one look.
  constexpr int kLooks = 2;
  const bool ends = gpu_parameters_.ends_over_users && use.asked_for && use.looks_over == kLooks;
  if (told_over_.insert(key).second) name_over_user(key, use, holders);
  if (!ends) return;
  log_.error("step {}.{} is ended: it has {} MiB of GPU {}, {}", use.step.key.job,
             step::step_name(use.step.key.step), use.used_mb, gpu, given_words(use));
  steps_.say(use.step, fmt::format("it is ended for the memory that it has of GPU {} of node {}",
                                   gpu, job.node));
  steps_.end(use.step, std::string(wire::kGpuMemoryCause), false);
}

/// To the job itself, and to those beside it on the GPU, who may run out of memory through no fault
/// of theirs. Of shards, which bound nothing, only where there are others.
void Agent::name_over_user(const GpuMemory::Key& key, const GpuMemoryUse& use,
                           const std::vector<Jobs::Holder>& holders) {
  const auto& [job, gpu] = key;
  std::string user;
  std::vector<NodeJob> beside;
  for (const Jobs::Holder& holder : holders) {
    if (holder.at == job) {
      user = holder.user;
    } else if (holder.gpus.test(gpu)) {
      beside.push_back(holder.at);
    }
  }
  if (!use.asked_for && beside.empty()) {
    told_over_.erase(key);
    return;
  }
  const std::string step =
      fmt::format("{}.{}", use.step.key.job, step::step_name(use.step.key.step));
  const std::string command = look_at_holder(use.pid).command;
  log_.error("step {} of {} has {} MiB of GPU {} (pid {}, {}), {}", step, user, use.used_mb, gpu,
             use.pid, command, given_words(use));
  const auto tell = [&](const NodeJob& to, const std::string& line) {
    for (const NodeStep& one : steps_.running(to.node, to.job, to.attempt)) steps_.say(one, line);
  };
  tell(job, fmt::format("GPU {} of node {} is shared, and this job has {} MiB of its memory (most "
                        "of it step {}, pid {}, {}): {}",
                        gpu, job.node, use.used_mb, step, use.pid, command, given_words(use)));
  for (const NodeJob& other : beside) {
    tell(other,
         fmt::format("GPU {} of node {} is shared, and job {} of {} has {} MiB of its memory, "
                     "more than its part ({}): what is allocated here may fail for it",
                     gpu, job.node, job.job, user, use.used_mb, given_words(use)));
  }
}

}  // namespace berth::node
