#include "node/gpu_idle.h"

#include <algorithm>

namespace berth::node {
namespace {

/// After a longer time without a look nothing is known of it.
constexpr std::chrono::seconds kLongestGap{5};

}  // namespace

bool GpuIdle::sees_all() const {
  return std::ranges::all_of(gpus_, [](const MeteredGpu& gpu) {
    return !gpu.missing.empty() || (gpu.number && !gpu.gpu_instance);
  });
}

GpuIdle::Use GpuIdle::use_of(const GpuRound& round, std::size_t index) const {
  if (index >= gpus_.size() || !gpus_[index].number || gpus_[index].gpu_instance) {
    return Use::unknown;
  }
  const auto sample = round.samples.find(*gpus_[index].number);
  if (sample == round.samples.end() || !sample->second.busy_percent) return Use::unknown;
  return *sample->second.busy_percent > 0 ? Use::busy : Use::idle;
}

void GpuIdle::look(const GpuRound& round, const std::vector<Jobs::Holder>& holders, Moment now) {
  const bool gap = !looked_ || now - *looked_ > kLongestGap;
  looked_ = now;
  std::map<NodeJob, Span> before = std::exchange(idle_, {});
  for (const Jobs::Holder& holder : holders) {
    const auto known = before.find(holder.at);
    Span span{gap || known == before.end() ? now : known->second.since};
    holder.gpus.each([&](std::size_t index) {
      const Use use = use_of(round, index);
      if (use != Use::idle) span.since = now;
      if (use == Use::unknown) span.seen = false;
    });
    idle_.emplace(holder.at, span);
  }
}

std::optional<std::chrono::milliseconds> GpuIdle::of(const NodeJob& job, Moment now) const {
  const auto found = idle_.find(job);
  if (found == idle_.end() || !found->second.seen) return std::nullopt;
  if (now - *looked_ > kLongestGap) return std::nullopt;
  // What has been since the last look is not known.
  return std::chrono::duration_cast<std::chrono::milliseconds>(*looked_ - found->second.since);
}

}  // namespace berth::node
