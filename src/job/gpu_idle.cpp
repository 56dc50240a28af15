// Jobs that do not use their GPUs: nodes are asked, the job is warned, and ended when its limit is
// over. Components of a heterogeneous job count as one job, whose leader has the clock.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"
#include "text/duration.h"
#include "text/hostlist.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::job {
namespace {

std::size_t gpus_of(const Job& job) {
  std::size_t count = 0;
  for (const cluster::NodeShare& share : job.allocation.nodes) count += share.gpus().count();
  return count;
}

std::vector<std::string> nodes_with_gpus(const State::Memory& m, const Job& job) {
  std::vector<std::string> out;
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    if (share.gpus().any()) out.push_back(m.cluster.nodes[share.node].name);
  }
  return out;
}

/// Where its user looks: the output of its script, or where srun or salloc wait.
void tell(State::Memory& m, const Job& job, std::string_view text) {
  std::string line = fmt::format("berth: {}", text);
  if (job.batch) {
    m.effect(SayInBatch{job.id, job.attempt, job.nodes.front(), std::move(line)});
  } else {
    m.effect(Notice{job.id, {Severity::bare, std::move(line)}});
  }
}

/// "job 12 has not used its 2 GPUs for 15 minutes".
std::string idle_words(State::Memory& m, const Job& job, Time idle) {
  std::size_t gpus = 0;
  for (const Job* part : m.components_of(job)) gpus += gpus_of(*part);
  return fmt::format("job {} has not used its {} for {}", job.shown(),
                     gpus == 1 ? std::string("GPU") : fmt::format("{} GPUs", gpus),
                     text::spoken_seconds(static_cast<std::uint64_t>(idle)));
}

const PartitionPolicy* policy_of(const Policy& policy, std::string_view partition) {
  const auto at = policy.partitions.find(std::string(partition));
  return at == policy.partitions.end() ? nullptr : &at->second;
}

std::optional<std::uint32_t> within_bound(const PartitionPolicy& of,
                                          std::optional<std::uint32_t> seconds) {
  if (!of.max_gpu_idle_seconds) return seconds;
  return std::min(seconds.value_or(*of.max_gpu_idle_seconds), *of.max_gpu_idle_seconds);
}

/// Where the limit comes from.
std::string limit_words(const Policy& policy, const Job& job) {
  const auto& asked = job.what->request.gpu_idle_seconds;
  if (!asked) return fmt::format("GpuIdleTimeout of partition {}", job.partition);
  const PartitionPolicy* of = policy_of(policy, job.partition);
  const bool cut = of != nullptr && *asked != job.gpu_idle_seconds && job.gpu_idle_seconds &&
                   job.gpu_idle_seconds == of->max_gpu_idle_seconds;
  return cut ? fmt::format("MaxGpuIdleTimeout of partition {}", job.partition)
             : std::string("--gpu-idle-timeout");
}

/// It can have GPUs: those that are asked for, or those of whole nodes.
bool may_have_gpus(const Job& job) {
  if (job.running) return gpus_of(job) > 0;
  const request::Request& request = job.what->request;
  if (request.exclusive == request::Exclusive::node) return true;
  for (const auto* asks : {&request.gres_per_node, &request.gres_per_job, &request.gres_per_socket,
                           &request.gres_per_task}) {
    for (const request::GresAsk& ask : *asks) {
      if (ask.count > 0 && (ask.name == "gpu" || text::is_part_of_gpu(ask.name))) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<std::uint32_t> default_gpu_idle(const Policy& policy, std::string_view partition) {
  const PartitionPolicy* of = policy_of(policy, partition);
  return of == nullptr ? std::nullopt : within_bound(*of, of->gpu_idle_seconds);
}

void decide_gpu_idle(const Policy& policy, Job& job) {
  const PartitionPolicy* of = policy_of(policy, job.partition);
  if (!std::exchange(job.gpu_idle_decided, true)) {
    job.gpu_idle_seconds = default_gpu_idle(policy, job.partition);
  } else if (of != nullptr && !job.gpu_idle_by_admin) {
    job.gpu_idle_seconds = within_bound(*of, job.gpu_idle_seconds);
  }
}

std::string gpu_idle_beyond(const Policy& policy, std::string_view partitions,
                            std::optional<std::uint32_t> seconds) {
  for (const std::string_view name : text::split(partitions, ',')) {
    const PartitionPolicy* of = policy_of(policy, name);
    if (of == nullptr || !of->max_gpu_idle_seconds) continue;
    if (seconds && *seconds <= *of->max_gpu_idle_seconds) continue;
    return fmt::format(
        "partition {} lets GPUs be idle for {} at most (MaxGpuIdleTimeout); asked "
        "for: {}",
        name, text::spoken_seconds(*of->max_gpu_idle_seconds),
        seconds ? text::spoken_seconds(*seconds) : std::string("no limit"));
  }
  return {};
}

std::optional<Time> State::Memory::gpu_idle_limit(const Job& job) {
  if (!job.running || job.base != Base::running || job.flags.completing) return std::nullopt;
  if (!job.het && !job.gpu_idle_seconds) return std::nullopt;
  std::optional<Time> limit;
  for (const Job* part : components_of(job)) {
    if (gpus_of(*part) == 0) continue;
    if (!part->gpu_idle_seconds) return std::nullopt;
    limit = std::max(limit.value_or(0), Time{*part->gpu_idle_seconds});
  }
  return limit;
}

Time State::Memory::gpu_idle_due(const Job& job) {
  if (job.het && job.het->offset > 0) return 0;
  const auto limit = gpu_idle_limit(job);
  return limit ? job.running->gpu_idle.next_look(*limit) : 0;
}

void State::Memory::start_gpu_idle(Job& leader, Time now) {
  leader.running->gpu_idle.start(now);
  touch(leader);
  arm(leader);
}

void State::Memory::ask_gpu_idle(Job& leader) {
  GpuIdleClock& clock = leader.running->gpu_idle;
  clock.told_since = 0;
  for (const Job* part : components_of(leader)) {
    std::vector<std::string> here = nodes_with_gpus(*this, *part);
    for (const std::string& node : here) clock.asked.emplace(part->id, node);
    if (!here.empty()) effect(AskGpuIdle{part->id, part->attempt, std::move(here)});
  }
}

void State::Memory::ask_gpu_idle_again(const Job& job, const std::string& node) {
  const Job& leader = *components_of(job).front();
  if (!leader.running || !leader.running->gpu_idle.asked.contains({job.id, node})) return;
  effect(AskGpuIdle{job.id, job.attempt, {node}});
}

void State::job_gpu_idle(const wire::JobGpuIdle& message, Time now) {
  Memory& m = *m_;
  Job* job = m.find(message.job_id());
  if (job == nullptr || !m.runs_on(*job, message.attempt(), message.node())) return;
  Job& leader = *m.components_of(*job).front();
  const auto limit = m.gpu_idle_limit(leader);
  if (!limit) return;
  GpuIdleClock& clock = leader.running->gpu_idle;
  std::optional<Time> idle;
  if (message.has_idle_ms()) idle = static_cast<Time>(message.idle_ms() / 1000);
  if (!clock.told(job->id, message.node(), idle, now)) return;
  switch (clock.decide(*limit, now)) {
    case GpuIdleClock::Do::wait:
      break;
    case GpuIdleClock::Do::warn:
      tell(m, leader,
           fmt::format("{}; it is ended in {} unless it does ({})",
                       idle_words(m, leader, clock.idle(now)),
                       text::spoken_seconds(static_cast<std::uint64_t>(clock.left(*limit, now))),
                       limit_words(m.policy, leader)));
      m.touch(leader);
      break;
    case GpuIdleClock::Do::end: {
      const std::string words = idle_words(m, leader, clock.idle(now));
      tell(m, leader, fmt::format("{} and is ended ({})", words, limit_words(m.policy, leader)));
      m.effect(Log{fmt::format("{} and is ended", words)});
      m.end_whole(leader, Base::timeout, "GpuIdle", "GPU IDLE TIMEOUT", false, now);
      return;
    }
  }
  m.arm(leader);
}

Result<void> State::Memory::set_gpu_idle(Job& job, std::optional<std::uint32_t> seconds,
                                         const Caller& caller) {
  if (seconds && !may_have_gpus(job)) {
    return fail(Code::bad_value, "GpuIdleTimeout is of jobs that have GPUs",
                fmt::format("job {} has none", job.shown()));
  }
  if (std::string beyond = gpu_idle_beyond(policy, job.partition, seconds);
      !beyond.empty() && !caller.privileged) {
    return fail(Code::invalid_time_limit, std::string(slurm_text(Code::invalid_time_limit)),
                std::move(beyond));
  }
  job.gpu_idle_seconds = seconds;
  job.gpu_idle_decided = true;
  job.gpu_idle_by_admin = caller.privileged;
  if (!job.running) return {};
  // It is warned again by the new one, and a question that is under way is asked again.
  Job& leader = *components_of(job).front();
  if (!leader.running) return {};  // it is over, and so is the clock
  leader.running->gpu_idle.warnings = 0;
  leader.running->gpu_idle.asked.clear();
  arm(leader);
  return {};
}

Result<std::vector<Message>> State::Memory::check_gpu_idle(const Submission& what,
                                                           const std::string& partitions) const {
  const auto asked = what.request.gpu_idle_seconds;
  std::vector<Message> warnings;
  if (!asked) return warnings;
  if (std::string beyond = gpu_idle_beyond(policy, partitions, *asked); !beyond.empty()) {
    return fail(Code::invalid_time_limit, std::string(slurm_text(Code::invalid_time_limit)),
                std::move(beyond));
  }
  if (!*asked) return warnings;
  if (policy.emulated) {
    warnings.push_back({Severity::bare,
                        "berth: --gpu-idle-timeout: the nodes are pretended, nobody sees whether "
                        "their GPUs are in use: the job is not ended for it"});
    return warnings;
  }
  std::set<std::string> blind;
  bool seen = false;
  for (const std::string_view name : text::split(partitions, ',')) {
    const cluster::Partition* partition = cluster.find_partition(name);
    if (partition == nullptr) continue;
    for (const cluster::NodeIndex index : partition->nodes) {
      const cluster::Node& node = cluster.nodes[index];
      const auto& wanted = what.request.nodelist;
      if (node.find_gres("gpu") == nullptr) continue;
      if (!wanted.empty() && std::ranges::find(wanted, node.name) == wanted.end()) continue;
      if (nodes[index].registered && nodes[index].gpus_unwatched) {
        blind.insert(node.name);
      } else {
        seen = true;
      }
    }
  }
  if (blind.empty()) return warnings;
  const std::string names =
      text::compress_hostlist(std::vector<std::string>(blind.begin(), blind.end()));
  if (!seen) {
    return fail(Code::unsupported, "--gpu-idle-timeout cannot be kept to",
                fmt::format("nobody sees whether the GPUs of {} are in use (it is seen of NVIDIA's "
                            "GPUs that are not cut into MIG parts, where NVML is): leave it out",
                            names));
  }
  warnings.push_back(
      {Severity::bare, fmt::format("berth: --gpu-idle-timeout: nobody sees whether the GPUs of {} "
                                   "are in use: there the job is not ended for it",
                                   names)});
  return warnings;
}

}  // namespace berth::job
