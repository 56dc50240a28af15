#include "node/gpu_health.h"

#include <fmt/format.h>

#include <algorithm>

#include "node/xids.h"

namespace berth::node {
namespace {

/// A process that ends takes a moment to leave the GPU.
constexpr int kRoundsToLeave = 2;

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

void GpuHealth::xid(const survey::Xid& xid, Moment now, const std::string& clock) {
  const std::string_view fault = hardware_fault(xid.code);
  if (fault.empty()) return;
  for (Gpu& gpu : gpus_) {
    if (gpu.is.number != xid.gpu) continue;
    gpu.xid = fmt::format("Xid {} at {}: {}", xid.code, clock, fault);
    gpu.well_since = now;
  }
}

std::string GpuHealth::sign_of(const Gpu& gpu, const GpuRound& round) const {
  const std::uint32_t number = *gpu.is.number;
  if (const auto lost = round.lost.find(number); lost != round.lost.end()) {
    return lost->second.empty() ? "it does not answer" : "it does not answer: " + lost->second;
  }
  const auto found = round.samples.find(number);
  if (found == round.samples.end()) return "it is not there any more";
  const survey::Sample& sample = found->second;
  if (sample.rows_failed.value_or(0) > 0) {
    return "a bad row of its memory could not be remapped: it has to be replaced";
  }
  if (const std::uint64_t errors = sample.ecc_uncorrected.value_or(0); errors > 0) {
    return counted(errors, "uncorrected ECC error") + ": reset it";
  }
  if (sample.rows_pending.value_or(0) > 0)
    return "a row of its memory waits to be remapped: reset it";
  return {};
}

void GpuHealth::round(const GpuRound& round, const Bits& held, Moment now) {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const MeteredGpu& is = gpus_[i].is;
    if (is.number && is.missing.empty()) see(gpus_[i], round, held.test(i), now);
  }
}

void GpuHealth::see(Gpu& gpu, const GpuRound& round, bool held, Moment now) const {
  gpu.sign = sign_of(gpu, round);
  if (!gpu.sign.empty()) {
    gpu.well_since = now;
  } else if (!gpu.xid.empty() && now - gpu.well_since.value_or(now) >= probation_) {
    gpu.xid.clear();
  }
  if (!round.samples.contains(*gpu.is.number)) return;  // nor does it tell who is on it

  gpu.processes.clear();
  for (const survey::Process& process : round.processes) {
    if (process.gpu != *gpu.is.number) continue;
    if (gpu.is.gpu_instance && process.gpu_instance != gpu.is.gpu_instance) continue;
    gpu.processes[process.pid] = process.memory_mb;
  }
  // What is on the GPU before any job is the machine's own: a display, a monitor.
  if (!gpu.residents) {
    gpu.residents.emplace();
    for (const auto& [pid, memory] : gpu.processes) {
      if (!held) gpu.residents->insert(pid);
    }
  }
  std::erase_if(*gpu.residents, [&](std::uint32_t pid) { return !gpu.processes.contains(pid); });
  std::erase_if(gpu.foreign_rounds,
                [&](const auto& entry) { return held || !gpu.processes.contains(entry.first); });
  if (held || !gpu.processes.contains(gpu.holder.first)) gpu.holder = {};
  if (held) return;
  for (const auto& [pid, memory] : gpu.processes) {
    if (gpu.residents->contains(pid)) continue;
    int& seen = gpu.foreign_rounds[pid];
    seen = std::min(seen + 1, kRoundsToLeave + 1);
    if (seen > kRoundsToLeave) name_holder(gpu, pid, memory);
  }
}

void GpuHealth::freed(const Bits& gpus) {
  gpus.each([&](std::size_t index) {
    if (index >= gpus_.size()) return;
    Gpu& gpu = gpus_[index];
    if (!gpu.residents) return;
    for (const auto& [pid, memory] : gpu.processes) {
      if (gpu.residents->contains(pid) || !look_(pid).lives) continue;
      gpu.foreign_rounds[pid] = kRoundsToLeave;
      name_holder(gpu, pid, memory);
    }
  });
}

/// The first one is named as long as it is there, so that the words do not change every second.
void GpuHealth::name_holder(Gpu& gpu, std::uint32_t pid,
                            std::optional<std::uint64_t> memory_mb) const {
  if (!gpu.holder.second.empty()) return;
  const Holder holder = look_(pid);
  if (holder.shared) return;
  std::string who = fmt::format("pid {}", pid);
  if (!holder.command.empty()) {
    who += fmt::format(" ({}{})", holder.command, holder.user.empty() ? "" : " of " + holder.user);
  }
  gpu.holder = {pid, memory_mb ? fmt::format("{} has {} MiB on it", who, *memory_mb)
                               : fmt::format("{} is on it", who)};
}

void GpuHealth::found(std::vector<MeteredGpu> gpus) {
  for (std::size_t i = 0; i < gpus_.size() && i < gpus.size(); ++i) {
    gpus_[i].is = std::move(gpus[i]);
  }
}

void GpuHealth::end_probation(std::uint32_t gpu) {
  if (gpu < gpus_.size()) gpus_[gpu].xid.clear();
}

bool GpuHealth::on_probation(std::uint32_t gpu) const {
  return gpu < gpus_.size() && gpus_[gpu].is.missing.empty() && gpus_[gpu].sign.empty() &&
         !gpus_[gpu].xid.empty();
}

std::string GpuHealth::holder_on(std::uint32_t gpu) const {
  return gpu < gpus_.size() ? gpus_[gpu].holder.second : std::string();
}

GpuHealth::Out GpuHealth::out() const {
  Out out;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const Gpu& gpu = gpus_[i];
    const std::string& sure = gpu.is.missing.empty() ? gpu.sign : gpu.is.missing;
    std::string why = sure.empty() ? gpu.xid : sure;
    // A probation can be ended by hand; who is on the GPU then keeps it out.
    if (sure.empty() && !gpu.holder.second.empty()) {
      why += (why.empty() ? "" : "; ") + gpu.holder.second;
    }
    if (!why.empty()) out.emplace(static_cast<std::uint32_t>(i), std::move(why));
  }
  return out;
}

}  // namespace berth::node
