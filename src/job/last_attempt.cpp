// Where the last attempt of a job may still run: nodes that went away without a word. The next one
// begins when each of them has said that nothing is left, when the job's lease is over there, or
// when an administrator says that the machine is off.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"
#include "text/hostlist.h"

namespace berth::job {

Time lease_of(const Policy& policy, const Job& job) {
  // What is never started again by itself may run on, as in Slurm; so may all where no node is
  // ever given up.
  if (policy.slurmd_timeout == 0 || !job.batch || job.het || !job.requeue) return 0;
  const Time least = policy.slurmd_timeout;
  return job.what->requeue == true ? least : std::max(least, Time{policy.requeue_lease});
}

bool State::Memory::reachable(cluster::NodeIndex index) const {
  const NodeState& node = nodes[index];
  return !node.power.away() && (node.responding || !node.down);
}

Time State::Memory::lease_end(cluster::NodeIndex index, const Job& job, Time now) const {
  if (job.lease == 0) return 0;
  const NodeState& node = nodes[index];
  const Time heard = node.silent_since > 0 ? node.silent_since : now;
  // These are whole seconds, rounded down.
  return (node.registered ? heard : std::max(heard, leases_rest_until)) + job.lease + 1;
}

void State::Memory::lose_sight(Job& job, cluster::NodeIndex index, Time now) {
  if (!job.batch) return;  // nobody starts it again
  const std::string& name = cluster.nodes[index].name;
  const Time until = lease_end(index, job, now);
  job.may_run_on[name] = until;
  may_run[name].insert(job.id);
  touch(job);
  if (!job.flags.requeued) return;
  effect(Log{until == 0
                 ? fmt::format("job {} may still run on {}, which does not answer: it begins again "
                               "when the node is back, or is said to be off",
                               job.id, name)
                 : fmt::format("job {} may still run on {}, which does not answer, for {} s: then "
                               "its lease there is over, and it may begin again",
                               job.id, name, std::max<Time>(0, until - now))});
}

void State::Memory::ended_there(Job& job, const std::string& node, Time now) {
  if (job.may_run_on.erase(node) == 0) return;
  const auto at = may_run.find(node);
  if (at != may_run.end()) {
    at->second.erase(job.id);
    if (at->second.empty()) may_run.erase(at);
  }
  look_again_at(job, now);
}

void State::Memory::look_again_at(Job& job, Time now) {
  for (Job* part : components_of(job)) {
    if (part->pending()) requeue_place(*part, now);
    arm(*part);
  }
  touch(job);
}

void State::Memory::forget_last_attempt(Job& job) {
  for (const auto& [name, until] : std::exchange(job.may_run_on, {})) {
    const auto at = may_run.find(name);
    if (at == may_run.end()) continue;
    at->second.erase(job.id);
    if (at->second.empty()) may_run.erase(at);
  }
}

std::vector<JobId> State::Memory::may_run_there(const std::string& node) const {
  const auto at = may_run.find(node);
  if (at == may_run.end()) return {};
  return {at->second.begin(), at->second.end()};
}

void State::Memory::nothing_runs_on(const std::string& node, Time now) {
  for (const JobId id : may_run_there(node)) {
    if (Job* job = find(id)) ended_there(*job, node, now);
  }
}

void State::Memory::hear_of_last_attempts(const wire::NodeReport& report, Time now) {
  for (const JobId id : may_run_there(report.name())) {
    Job* job = find(id);
    if (job == nullptr) continue;
    const bool held = std::ranges::any_of(report.jobs(), [&](const wire::HeldJob& one) {
      return one.job_id() == id && one.attempt() == job->attempt;
    });
    if (!held) {
      ended_there(*job, report.name(), now);
    } else {
      // Its lease counts anew from now on: JobGone tells when it is over.
      job->may_run_on[report.name()] = 0;
      look_again_at(*job, now);
    }
  }
}

void State::Memory::leases_count(cluster::NodeIndex index, Time now) {
  const std::string& name = cluster.nodes[index].name;
  for (const JobId id : may_run_there(name)) {
    Job* job = find(id);
    if (job == nullptr || job->may_run_on[name] != 0) continue;
    job->may_run_on[name] = lease_end(index, *job, now);
    look_again_at(*job, now);
  }
}

Time State::Memory::not_before(const Job& job) const {
  Time out = job.begin_time;
  const auto look = [&](const Job& part) {
    for (const auto& [name, until] : part.may_run_on) out = std::max(out, until);
  };
  look(job);
  if (!job.het) return out;
  for (const JobId id : records_of(job.het->leader)) {
    if (const auto at = jobs.find(id); at != jobs.end()) look(at->second);
  }
  return out;
}

std::string State::Memory::awaited_word(const Job& job) const {
  std::vector<std::string> names;
  const auto look = [&](const Job& part) {
    for (const auto& [name, until] : part.may_run_on) {
      if (until == 0) names.push_back(name);
    }
  };
  look(job);
  if (job.het) {
    for (const JobId id : records_of(job.het->leader)) {
      if (id == job.id) continue;
      if (const auto at = jobs.find(id); at != jobs.end()) look(at->second);
    }
  }
  if (names.empty()) return {};
  return fmt::format(
      "it may still run on {}: it begins again when the node has said that it has ended there, or "
      "an administrator that the machine is off (scontrol update nodename={} "
      "state=power_down_force)",
      text::compress_hostlist(names), names.front());
}

std::string State::Memory::lease_text(const Job& job, Time now) {
  std::vector<std::string> names;
  for (const auto& [name, until] : job.may_run_on) {
    if (until > now) names.push_back(name);
  }
  if (names.empty()) return {};
  return fmt::format("it may still run on {}, which does not answer: until its lease there is over",
                     text::compress_hostlist(names));
}

}  // namespace berth::job
