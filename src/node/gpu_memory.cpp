#include "node/gpu_memory.h"

#include <algorithm>

namespace berth::node {
namespace {

/// What is freed and allocated anew may be counted twice in one look.
constexpr int kLooks = 2;

}  // namespace

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
      Largest largest;
      for (const auto& [step, sum] : by_gpu[gpu]) {
        if (NodeJob{step.node, step.key.job, step.key.attempt} == holder.at) {
          add(step, sum, use, largest);
        }
      }
      const auto before = uses_.find({holder.at, gpu});
      const GpuMemoryUse last = before == uses_.end() ? GpuMemoryUse{} : before->second;
      if (use.over()) use.looks_over = last.looks_over + 1;
      if (use.over(use.staying.used_mb)) use.staying.looks_over = last.staying.looks_over + 1;
    }
  }
  uses_ = std::move(now);
  forget_gone(holders);
}

void GpuMemory::add(const NodeStep& step, const Sum& sum, GpuMemoryUse& use,
                    Largest& largest) const {
  use.used_mb += sum.mb;
  if (sum.mb > largest.of_all) {
    largest.of_all = sum.mb;
    use.step = step;
    use.pid = sum.largest.second;
  }
  if (greedy_.contains(step)) return;
  use.staying.used_mb += sum.mb;
  if (sum.mb <= largest.of_staying) return;
  largest.of_staying = sum.mb;
  use.staying.step = step;
}

void GpuMemory::forget_gone(const std::vector<Jobs::Holder>& holders) {
  std::set<NodeJob> here;
  for (const Jobs::Holder& holder : holders) here.insert(holder.at);
  std::erase_if(told_, [&](const auto& pair) {
    return !uses_.contains(pair.first) || !here.contains(pair.second);
  });
  std::erase_if(greedy_, [&](const NodeStep& step) {
    return !here.contains({step.node, step.key.job, step.key.attempt});
  });
}

std::vector<NodeJob> GpuMemory::untold(const Key& over,
                                       const std::vector<Jobs::Holder>& holders) const {
  const auto use = uses_.find(over);
  if (use == uses_.end() || use->second.looks_over < kLooks) return {};
  const auto& [job, gpu] = over;
  std::vector<NodeJob> all = {job};
  for (const Jobs::Holder& holder : holders) {
    if (holder.at != job && holder.gpus.test(gpu)) all.push_back(holder.at);
  }
  if (!use->second.asked_for && all.size() == 1) return {};
  std::erase_if(all, [&](const NodeJob& one) { return told_.contains({over, one}); });
  return all;
}

std::optional<NodeStep> GpuMemory::take_greedy(const Key& over) {
  const auto use = uses_.find(over);
  if (use == uses_.end() || !use->second.asked_for) return std::nullopt;
  auto& staying = use->second.staying;
  if (staying.looks_over < kLooks) return std::nullopt;
  staying.looks_over = 0;
  greedy_.insert(staying.step);
  return staying.step;
}

}  // namespace berth::node
