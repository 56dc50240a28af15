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

}  // namespace

bool State::job_gpus(const wire::JobGpus& message, Time now) {
  // More than a node can have is not kept.
  constexpr std::size_t kMostGpus = 65536;
  // Between stores only what came since is lost when the controller is killed.
  constexpr Time kStoreEvery = 300;
  Memory& m = *m_;
  Job* job = m.find(message.job_id());
  if (job == nullptr || !m.runs_on(*job, message.attempt(), message.node())) return false;
  if (!job->gpu_uses) job->gpu_uses = std::make_unique<GpuUses>();
  std::vector<wire::GpuUse>& all = job->gpu_uses->all;
  for (const wire::GpuUse& news : message.gpus()) {
    auto known = std::ranges::find_if(all, [&](const wire::GpuUse& one) {
      return one.index() == news.index() && one.node() == message.node();
    });
    if (known == all.end()) {
      if (all.size() == kMostGpus) break;
      known = all.emplace(all.end());
    }
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
