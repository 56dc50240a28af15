// State as others read it, and the queue of what changed.
#include "job/state.h"

#include <algorithm>

#include "job/first_pass.h"
#include "job/memory.h"
#include "job/record.h"

namespace berth::job {

State::State(cluster::Cluster cluster, Policy policy)
    : m_(std::make_unique<Memory>(std::move(cluster), std::move(policy))) {}
State::~State() = default;

const cluster::Cluster& State::cluster() const {
  return m_->cluster;
}
const cluster::Usage& State::usage() const {
  return *m_->usage;
}
const Policy& State::policy() const {
  return m_->policy;
}
const std::set<JobId>& State::holding() const {
  return m_->holding;
}
const cluster::ChangeLog& State::ends_changed() const {
  return m_->ends_changed;
}
const std::map<JobId, Job>& State::jobs() const {
  return m_->jobs.ordered();
}
const Job* State::find(JobId id) const {
  return m_->find(id);
}
const NodeState& State::node(cluster::NodeIndex index) const {
  return m_->nodes[index];
}
const NodeState* State::find_node(std::string_view name) const {
  return m_->find_node(name);
}
const std::set<QueueKey>& State::queue() const {
  return m_->queue;
}
QueueKey State::key_for(const Job& job) const {
  return m_->key_for(job);
}
std::optional<QueueKey> State::key_of(JobId id) const {
  const auto at = m_->keys.find(id);
  if (at == m_->keys.end()) return std::nullopt;
  return at->second;
}
const std::map<std::string, wire::PartitionRecord>& State::partition_records() const {
  return m_->partition_records;
}
std::size_t State::pending_count() const {
  return m_->queue.size();
}
Backfilled State::backfilled() const {
  return m_->backfilled;
}
std::uint64_t State::priority_round() const {
  return m_->priority_round;
}
Time State::priorities_at() const {
  return m_->priorities_at;
}
const PriorityTotals& State::priority_totals() const {
  return m_->priority_totals;
}
std::uint64_t State::version() const {
  return m_->version;
}
std::vector<JobId> State::records_of(JobId id) const {
  return m_->records_of(id);
}

const Job* State::find_element(JobId array, std::uint32_t task) const {
  for (const JobId id : m_->records_of(array)) {
    const Job* job = m_->find(id);
    if (job == nullptr || !job->array) continue;
    if (job->array->task == task || (!job->array->task && job->array->rest.test(task))) return job;
  }
  return nullptr;
}

std::vector<JobId> State::named(const wire::JobName& name) const {
  if (name.has_array_task()) {
    const Job* job = find_element(name.id(), name.array_task());
    return job == nullptr ? std::vector<JobId>() : std::vector<JobId>{job->id};
  }
  std::vector<JobId> out;
  for (const JobId id : m_->records_of(name.id())) {
    const Job& job = *m_->find(id);
    if (name.has_het_offset() && (!job.het || job.het->offset != name.het_offset())) continue;
    out.push_back(id);
  }
  // An element or component by its own number.
  if (out.empty() && m_->jobs.contains(name.id())) out.push_back(name.id());
  return out;
}

std::uint64_t State::licenses_used(const std::string& name) const {
  const auto at = m_->licenses_used.find(name);
  return at == m_->licenses_used.end() ? 0 : at->second;
}

bool State::all_ended(JobId id) const {
  return std::ranges::all_of(m_->records_of(id), [&](JobId one) {
    const Job* job = m_->find(one);
    return job == nullptr || ended(job->base);
  });
}

std::int32_t State::highest_exit(JobId id) const {
  std::int32_t highest = 0;
  for (const JobId one : m_->records_of(id)) {
    if (const Job* job = m_->find(one)) highest = std::max(highest, job->exit_status);
  }
  return highest;
}

std::uint64_t State::configuration() const {
  return m_->configuration;
}

std::vector<cluster::NodeIndex> State::take_grown_nodes() {
  return m_->usage->take_grown();
}

Wake State::take_wake() {
  Wake out = std::move(m_->wake);
  m_->wake = {};
  return out;
}

void State::set_reason(JobId id, std::string_view reason, std::string text, Time now) {
  Job* job = m_->find(id);
  if (job == nullptr || !job->pending()) return;
  // Too many nodes is said in two ways: of the partition first, of its limit some seconds later.
  if (reason == "PartitionNodeLimit" && now < job->submit_time + kFirstPass) {
    reason = "PartitionConfig";
  }
  for (Job* part : m_->components_of(*job)) {
    part->last_evaluation = now;
    m_->set_reason(*part, reason, text);
    part->waits.waits_for(reason, now);
    if (reason == "PartitionConfig") m_->arm(*part);
  }
}

void State::set_planned(JobId id, Time start, std::string nodes) {
  Job* job = m_->find(id);
  if (job == nullptr || (job->planned_start == start && job->planned_nodes == nodes)) return;
  job->planned_start = start;
  job->planned_nodes = std::move(nodes);
  m_->changed_jobs.insert(id);
}

void State::keep_partition(wire::PartitionRecord record) {
  m_->dirty_partitions.insert(record.name());
  m_->sync = true;
  m_->partition_records[record.name()] = std::move(record);
}

std::vector<Effect> State::take_effects() {
  m_->flush_power();
  return std::exchange(m_->effects, {});
}

std::set<std::string> State::take_changed_nodes() {
  return std::exchange(m_->changed_nodes, {});
}

std::set<JobId> State::take_changed() {
  return std::exchange(m_->changed_jobs, {});
}

void State::discard_changes() {
  Memory& m = *m_;
  m.last_records.clear();
  m.dirty_jobs.clear();
  m.changed_jobs.clear();
  m.dirty_steps.clear();
  m.dirty_nodes.clear();
  m.changed_nodes.clear();
  m.dropped_nodes.clear();
  m.dirty_partitions.clear();
  m.dirty_reservations.clear();
  m.forgotten.clear();
  m.dirty_next_id = m.sync = false;
}

Dirty State::take_dirty() {
  Dirty out;
  out.jobs = std::exchange(m_->last_records, {});
  for (const JobId id : std::exchange(m_->dirty_jobs, {})) {
    if (const Job* job = m_->find(id)) out.jobs.push_back(to_record(m_->cluster, *job));
  }
  out.steps = std::exchange(m_->dirty_steps, {});
  for (const cluster::NodeIndex index : std::exchange(m_->dirty_nodes, {})) {
    out.nodes.push_back(to_record(m_->cluster.nodes[index].name, m_->nodes[index]));
  }
  for (const std::string& name : std::exchange(m_->dropped_nodes, {})) {
    out.nodes.emplace_back().set_name(name);  // nothing is left of it but its name
  }
  for (const std::string& name : std::exchange(m_->dirty_partitions, {})) {
    out.partitions.push_back(m_->partition_records[name]);
  }
  for (const std::string& name : std::exchange(m_->dirty_reservations, {})) {
    const auto at = m_->reservations.find(name);
    if (at == m_->reservations.end()) {
      out.deleted_reservations.push_back(name);
    } else {
      out.reservations.push_back(to_record(m_->cluster, at->second));
    }
  }
  out.forgotten = std::exchange(m_->forgotten, {});
  if (std::exchange(m_->dirty_next_id, false)) out.next_job_id = m_->next_id;
  if (std::exchange(m_->dirty_leases_rest, false)) out.leases_rest_until = m_->leases_rest_until;
  out.sync = std::exchange(m_->sync, false);
  return out;
}

}  // namespace berth::job
