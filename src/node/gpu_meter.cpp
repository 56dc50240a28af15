#include "node/gpu_meter.h"

#include <algorithm>

namespace berth::node {

bool GpuMeter::watches_any() const {
  return std::ranges::any_of(gpus_, [](const MeteredGpu& gpu) { return gpu.number.has_value(); });
}

std::map<std::uint32_t, std::uint32_t> GpuMeter::numbers_of(const Bits& gpus) const {
  std::map<std::uint32_t, std::uint32_t> out;
  gpus.each([&](std::size_t index) {
    if (index >= gpus_.size() || !gpus_[index].number || gpus_[index].gpu_instance) return;
    out[*gpus_[index].number] = static_cast<std::uint32_t>(index);
  });
  return out;
}

void GpuMeter::add(const GpuRound& round, const std::vector<Jobs::Holder>& holders,
                   const Owns& owns) {
  for (const Jobs::Holder& holder : holders) {
    holder.gpus.each([&](std::size_t index) {
      if (index >= gpus_.size() || !gpus_[index].number) return;
      if (!round.samples.contains(*gpus_[index].number)) return;
      const auto own = owns.find({holder.at, index});
      add(round, index, own == owns.end() ? nullptr : &own->second, uses_[holder.at][index]);
    });
  }
}

void GpuMeter::add(const GpuRound& round, std::size_t index, const Own* own,
                   wire::GpuUse& use) const {
  const MeteredGpu& gpu = gpus_[index];
  const survey::Sample& sample = round.samples.at(*gpu.number);
  const std::uint32_t busy = sample.busy_percent.value_or(0);
  const std::uint64_t power = sample.power_mw.value_or(0);
  std::uint64_t memory = sample.memory_used_mb.value_or(0);
  std::uint32_t processes = 0;
  std::uint64_t of_processes = 0;
  for (const survey::Process& process : round.processes) {
    if (!gpu.has(process)) continue;
    ++processes;
    of_processes += process.memory_mb.value_or(0);
  }
  // The rest of the GPU is others'.
  if (gpu.gpu_instance) memory = of_processes;
  if (own != nullptr) memory = own->used_mb;
  use.set_memory_given_mb(own == nullptr ? 0 : own->given_mb);
  use.set_rounds(use.rounds() + 1);
  use.set_busy_sum(use.busy_sum() + busy);
  use.set_busy_most(std::max(use.busy_most(), busy));
  use.set_busy_now(busy);
  use.set_memory_now_mb(memory);
  use.set_memory_most_mb(std::max(use.memory_most_mb(), memory));
  use.set_power_now_mw(static_cast<std::uint32_t>(power));
  use.set_energy_mj(use.energy_mj() + power);  // one second of it
  use.set_idle_rounds(busy > 0 ? 0 : use.idle_rounds() + 1);
  use.set_processes_now(processes);
}

wire::JobGpus GpuMeter::take(const NodeJob& job) {
  wire::JobGpus out;
  out.set_node(job.node);
  out.set_job_id(job.job);
  out.set_attempt(job.attempt);
  const auto found = uses_.find(job);
  if (found == uses_.end()) return out;
  for (auto& [index, use] : found->second) {
    if (use.rounds() == 0) continue;
    wire::GpuUse& told = *out.add_gpus();
    told = use;
    told.set_node(job.node);
    told.set_index(static_cast<std::uint32_t>(index));
    told.set_memory_mb(gpus_[index].memory_mb);
    told.set_type(gpus_[index].type);
    // Its idleness goes on; sums begin anew.
    const std::uint32_t idle = use.idle_rounds();
    use = {};
    use.set_idle_rounds(idle);
  }
  return out;
}

std::vector<NodeJob> GpuMeter::jobs() const {
  std::vector<NodeJob> out;
  for (const auto& [job, uses] : uses_) out.push_back(job);
  return out;
}

}  // namespace berth::node
