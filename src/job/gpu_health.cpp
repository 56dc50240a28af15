// GPUs that nodes take out of service, one by one, and give back.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"
#include "text/hostlist.h"

namespace berth::job {
namespace {

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
    if (wire::GpuUse* known = job->gpu_uses->of(name, gpu)) known->set_trouble(why);
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

std::size_t gpu_count(const cluster::Node& node) {
  const cluster::Gres* gpus = node.find_gres("gpu");
  return gpus == nullptr ? 0 : gpus->devices.size();
}

Result<void> check_gpus(const State::Memory& m, const std::string& name, const GpuChange& change) {
  const auto index = m.cluster.find_node(name);
  if (!index) {
    return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
                fmt::format("{} is not in slurm.conf", name));
  }
  const std::size_t count = gpu_count(m.cluster.nodes[*index]);
  if (change.gpus.any() && change.gpus.last() < count) return {};
  return fail(Code::bad_value, "Invalid GPU specified",
              count == 0   ? fmt::format("{} has no GPUs", name)
              : count == 1 ? fmt::format("{} has GPU 0", name)
                           : fmt::format("{} has GPUs 0-{}", name, count - 1));
}

/// Gives back what is out by hand, and what the node only watches. Returns why it stays out, ""
/// when it does not; `changed` when something was done.
std::string resume_gpu(State::Memory& m, cluster::NodeIndex index, std::uint32_t gpu,
                       bool& changed) {
  NodeState& node = m.nodes[index];
  changed = node.gpus_drained.erase(gpu) > 0 || changed;
  const auto told = node.gpus_out.find(gpu);
  if (told == node.gpus_out.end()) return {};
  const auto probation = node.gpus_on_probation.find(gpu);
  if (probation == node.gpus_on_probation.end()) return told->second;
  if (!node.responding) return "its node does not respond: " + told->second;
  m.effect(EndProbation{m.cluster.nodes[index].name, gpu});
  changed = true;
  return probation->second;
}

}  // namespace

GpusOut State::Memory::gpus_out_of(const NodeState& node) {
  GpusOut out = node.gpus_out;
  for (const auto& [gpu, drained] : node.gpus_drained) {
    std::string& words = out[gpu];
    words =
        fmt::format("{} [{}]{}{}", drained.reason, drained.by, words.empty() ? "" : ", ", words);
  }
  return out;
}

void State::Memory::forget_missing_gpus(cluster::NodeIndex index) {
  const std::size_t count = gpu_count(cluster.nodes[index]);
  const std::size_t gone = std::erase_if(nodes[index].gpus_drained, [&](const auto& drained) {
    if (drained.first < count) return false;
    effect(Log{fmt::format("node {}: GPU {} was out of service and is not in slurm.conf any more",
                           cluster.nodes[index].name, drained.first)});
    return true;
  });
  if (gone > 0) touch_node(index);
}

Result<std::vector<Message>> State::change_gpus(const std::vector<std::string>& names,
                                                const GpuChange& change) {
  Memory& m = *m_;
  if (!change.caller.privileged) return pass(job_error(JobFault::not_yours));
  for (const std::string& name : names) {
    if (auto fine = check_gpus(m, name, change); !fine) return pass(std::move(fine.error()));
  }
  std::vector<std::string> stays;
  bool changed = change.drain;
  for (const std::string& name : names) {
    const cluster::NodeIndex index = *m.cluster.find_node(name);
    for (const std::size_t member : change.gpus.members()) {
      const auto gpu = static_cast<std::uint32_t>(member);
      if (change.drain) {
        m.nodes[index].gpus_drained[gpu] = {change.reason.substr(0, kMostWords), change.by};
        m.effect(Log{fmt::format("node {}: GPU {} is taken out of service: {} [{}]", name, gpu,
                                 change.reason, change.by)});
        continue;
      }
      const std::string why = resume_gpu(m, index, gpu, changed);
      if (why.empty()) continue;
      stays.push_back(fmt::format("GPU {} of node {} stays out of service: {}", gpu, name, why));
    }
    m.refresh_usable(index);
    m.touch_node(index);
  }
  if (!changed) {
    return fail(Code::bad_value, "Invalid GPU state specified",
                stays.empty() ? std::string("it is in service") : stays.front());
  }
  if (!change.drain) {
    m.effect(Log{fmt::format("{}: GPUs {} are resumed [{}]", text::compress_hostlist(names),
                             change.gpus.ranges(), change.by)});
  }
  std::vector<Message> lines;
  for (const std::string& words : stays) lines.push_back({Severity::bare, "berth: " + words});
  return lines;
}

void State::Memory::take_gpus_out(cluster::NodeIndex index,
                                  const google::protobuf::RepeatedPtrField<wire::GpuOut>& told) {
  GpusOut now;
  nodes[index].gpus_on_probation.clear();
  for (const wire::GpuOut& one : told) {
    if (one.index() >= kMostGpusOfNode) continue;
    now[one.index()] = one.why().substr(0, kMostWords);
    if (!one.probation()) continue;
    nodes[index].gpus_on_probation[one.index()] = one.beyond_probation().substr(0, kMostWords);
  }
  GpusOut before = std::exchange(nodes[index].gpus_out, now);
  if (before == now) return;
  const std::string& name = cluster.nodes[index].name;
  for (const auto& [gpu, why] : now) {
    const auto same = before.find(gpu);
    if (same != before.end() && same->second == why) continue;
    if (same == before.end()) {
      effect(Log{fmt::format("node {}: GPU {} is out of service: {}", name, gpu, why),
                 "node " + name});
    }
    tell_holders(*this, index, gpu, why);
  }
  for (const auto& [gpu, why] : before) {
    if (now.contains(gpu)) continue;
    effect(Log{fmt::format("node {}: GPU {} is in service again", name, gpu), "node " + name});
  }
  refresh_usable(index);
  ++version;
}

void State::gpu_health(const wire::GpuHealth& message) {
  const auto index = m_->cluster.find_node(message.node());
  if (index) m_->take_gpus_out(*index, message.out());
}

}  // namespace berth::job
