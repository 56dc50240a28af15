// The order of the queue: priorities of jobs that wait, and how they change as time passes.
#include <algorithm>
#include <vector>

#include "job/memory.h"

namespace berth::job {
namespace {

/// priority/basic counts down from here, so that who came first is first.
constexpr std::uint32_t kFirstPriority = 4294901760U;

}  // namespace

std::uint32_t State::Memory::natural_priority() {
  return kFirstPriority - std::min(fifo++, kFirstPriority - 1);
}

void State::Memory::after_priority(std::uint32_t priority) {
  if (priority == 0 || priority > kFirstPriority) return;
  fifo = std::max(fifo, kFirstPriority - priority + 1);
}

double State::Memory::priority_sum(const Job& job, Time now) const {
  const PriorityPolicy& p = policy.priority;
  if (p.weight_age == 0) return job.priority_base;
  return job.priority_base +
         p.weight_age *
             age_factor(p, waited(p, {job.submit_time, job.accrue_since, job.accrued}, now));
}

std::uint32_t State::Memory::current_priority(const Job& job, Time now) const {
  return priority_of(priority_sum(job, now), job.nice);
}

void State::Memory::set_priority(Job& job, Time now) {
  const PriorityPolicy& p = policy.priority;
  if (!p.multifactor) return;
  job.priority_base = 0;
  // One that may run in several partitions stands where its best one puts it.
  for (const std::string& name : partitions_asked(cluster, *job.what)) {
    const PriorityAsk ask =
        priority_ask(cluster, p, *job.what, cluster.find_partition(name), job.time_limit_minutes);
    const double sum = weighted_sum(p, priority_factors(p, priority_totals, ask, name));
    job.priority_base = std::max(job.priority_base, sum);
  }
  if (job.priority_fixed) return;
  const std::uint32_t priority = current_priority(job, now);
  job.priority = p.only_up ? std::max(job.priority, priority) : priority;
}

void State::Memory::count_age(Job& job, bool grows, Time now) {
  if (grows == (job.accrue_since != 0)) return;
  if (!grows) job.accrued += std::max<Time>(0, now - job.accrue_since);
  job.accrue_since = grows ? now : 0;
}

void State::Memory::reprioritise(Time now) {
  const PriorityPolicy& p = policy.priority;
  priority_due.reset();
  if (!p.multifactor || p.weight_age == 0) return;
  priorities_at = now;
  bool changed = false;
  for (auto& [id, job] : jobs) {
    if (!job.pending() || job.priority == 0 || job.priority_fixed) continue;
    std::uint32_t priority = current_priority(job, now);
    if (p.only_up) priority = std::max(priority, job.priority);
    if (priority == job.priority) continue;
    job.priority = priority;
    changed = true;
    if (const auto at = keys.find(id); at != keys.end()) at->second.priority = priority;
  }
  if (!queue.empty()) priority_due = now + p.calc_period;
  if (!changed) return;
  std::vector<QueueKey> order;
  order.reserve(keys.size());
  for (const auto& [id, key] : keys) order.push_back(key);
  std::ranges::sort(order, std::less<>());
  // The nodes of the old set carry the new order: nothing is allocated.
  std::set<QueueKey> fresh;
  for (const QueueKey& key : order) {
    auto node = queue.extract(queue.begin());
    node.value() = key;
    fresh.insert(fresh.end(), std::move(node));
  }
  queue.swap(fresh);
  ++priority_round;
  ++version;
  wake_all();
}

void State::Memory::configure_priorities(bool was_multifactor) {
  priority_totals = job::priority_totals(cluster, policy);
  priority_due.reset();
  if (policy.priority.multifactor) return;  // each is worked out as it enters the queue again
  if (!was_multifactor) return;
  // First come, first served from now on: who waits keeps the place it has.
  std::vector<QueueKey> order(queue.begin(), queue.end());
  for (const QueueKey& key : order) {
    Job& job = jobs.at(key.id);
    if (!job.priority_fixed) job.priority = priority_of(natural_priority(), job.nice);
  }
  for (auto& [id, job] : jobs) {
    if (!job.pending() || job.priority == 0 || job.priority_fixed || keys.contains(id)) continue;
    job.priority = priority_of(natural_priority(), job.nice);
  }
}

}  // namespace berth::job
