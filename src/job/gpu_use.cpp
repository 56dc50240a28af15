// What nodes tell of the use of a job's GPUs, added up.
#include <algorithm>

#include "job/memory.h"

namespace berth::job {
namespace {

void add(const wire::GpuUse& news, wire::GpuUse& known) {
  const std::uint64_t busy = known.busy_sum() + news.busy_sum();
  const std::uint64_t energy = known.energy_mj() + news.energy_mj();
  const std::uint32_t rounds = known.rounds() + news.rounds();
  const std::uint32_t busy_most = std::max(known.busy_most(), news.busy_most());
  const std::uint64_t memory_most = std::max(known.memory_most_mb(), news.memory_most_mb());
  const std::string trouble = known.trouble();
  known = news;  // what is so now
  known.set_trouble(trouble);
  known.set_busy_sum(busy);
  known.set_energy_mj(energy);
  known.set_rounds(rounds);
  known.set_busy_most(busy_most);
  known.set_memory_most_mb(memory_most);
}

/// Of a job.
constexpr std::size_t kMostUses = 65536;

}  // namespace

wire::GpuUse* GpuUses::of(const std::string& node, std::uint32_t gpu) {
  for (; placed_ < all.size(); ++placed_) {  // they were read from the store
    places_[{all[placed_].node(), all[placed_].index()}] = placed_;
  }
  const auto [place, added] = places_.try_emplace({node, gpu}, all.size());
  if (!added) return &all[place->second];
  if (all.size() == kMostUses) {
    places_.erase(place);
    return nullptr;
  }
  wire::GpuUse& use = all.emplace_back();
  ++placed_;
  use.set_node(node);
  use.set_index(gpu);
  return &use;
}

bool State::job_gpus(const wire::JobGpus& message, Time now) {
  // Between stores only what came since is lost when the controller is killed.
  constexpr Time kStoreEvery = 300;
  Memory& m = *m_;
  Job* job = m.find(message.job_id());
  if (job == nullptr || !m.runs_on(*job, message.attempt(), message.node())) return false;
  if (!job->gpu_uses) job->gpu_uses = std::make_unique<GpuUses>();
  for (const wire::GpuUse& news : message.gpus()) {
    if (news.index() >= kMostGpusOfNode) continue;
    wire::GpuUse* known = job->gpu_uses->of(message.node(), news.index());
    if (known == nullptr) break;
    add(news, *known);
    known->set_node(message.node());
  }
  if (now >= job->gpu_uses->stored + kStoreEvery || job->flags.completing) {
    job->gpu_uses->stored = now;
    m.touch(*job);
  }
  return true;
}

}  // namespace berth::job
