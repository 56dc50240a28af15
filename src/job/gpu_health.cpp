// GPUs that nodes take out of service, one by one, and give back.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"

namespace berth::job {
namespace {

/// More than a node can have is not kept.
constexpr std::uint32_t kMostGpus = 1024;
constexpr std::size_t kMostWords = 400;

using GpusOut = std::map<std::uint32_t, std::string>;

/// Jobs that hold the GPU, whole or in parts, have it in what is kept of them, and their users hear
/// of it where they wait for the job.
void tell_holders(State::Memory& m, cluster::NodeIndex index, std::uint32_t gpu,
                  const std::string& why) {
  const std::string& name = m.cluster.nodes[index].name;
  const std::set<JobId> here = m.nodes[index].jobs;
  for (const JobId id : here) {
    Job* job = m.find(id);
    if (job == nullptr || !job->running || job->flags.completing) continue;
    const auto share = std::ranges::find(job->allocation.nodes, index, &cluster::NodeShare::node);
    if (share == job->allocation.nodes.end() || !share->gpus().test(gpu)) continue;
    if (!job->gpu_uses) job->gpu_uses = std::make_unique<GpuUses>();
    std::vector<wire::GpuUse>& all = job->gpu_uses->all;
    auto known = std::ranges::find_if(
        all, [&](const wire::GpuUse& one) { return one.index() == gpu && one.node() == name; });
    if (known == all.end()) {
      known = all.emplace(all.end());
      known->set_node(name);
      known->set_index(gpu);
    }
    known->set_trouble(why);
    m.touch(*job);
    // Steps and batch scripts are told by the node's agent.
    if (!job->batch && job->running->open_steps.empty()) {
      m.effect(Notice{id,
                      {Severity::error,
                       fmt::format("GPU {} of node {} is out of service: {}", gpu, name, why)}});
    }
    m.effect(Log{fmt::format("job {} holds GPU {} of node {}, which is out of service: {}", id, gpu,
                             name, why)});
  }
}

}  // namespace

void State::Memory::take_gpus_out(cluster::NodeIndex index,
                                  const google::protobuf::RepeatedPtrField<wire::GpuOut>& told) {
  GpusOut now;
  for (const wire::GpuOut& one : told) {
    if (one.index() >= kMostGpus) continue;
    now[one.index()] = one.why().substr(0, kMostWords);
  }
  GpusOut before = std::exchange(nodes[index].gpus_out, now);
  if (before == now) return;
  const std::string& name = cluster.nodes[index].name;
  for (const auto& [gpu, why] : now) {
    const auto same = before.find(gpu);
    if (same != before.end() && same->second == why) continue;
    if (same == before.end()) {
      effect(Log{fmt::format("node {}: GPU {} is out of service: {}", name, gpu, why)});
    }
    tell_holders(*this, index, gpu, why);
  }
  for (const auto& [gpu, why] : before) {
    if (now.contains(gpu)) continue;
    effect(Log{fmt::format("node {}: GPU {} is in service again", name, gpu)});
  }
  refresh_usable(index);
  ++version;
}

void State::gpu_health(const wire::GpuHealth& message) {
  const auto index = m_->cluster.find_node(message.node());
  if (index) m_->take_gpus_out(*index, message.out());
}

}  // namespace berth::job
