// After a restart, and after slurm.conf was read again.
#include <fmt/format.h>

#include <algorithm>

#include "job/found_gpus.h"
#include "job/launch.h"
#include "job/memory.h"
#include "job/record.h"
#include "place/ask.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::job {
namespace {

/// What steps see of a job that has its allocation already.
place::JobFacts facts_again(const State::Memory& m, const Job& job) {
  place::JobFacts facts;
  facts.id = job.id;
  facts.name = job.what->job_name;
  facts.request = job.what->request;
  if (auto counts = request::derive_counts(facts.request)) facts.counts = std::move(*counts);
  facts.allocation = job.allocation;
  facts.partition = job.partition;
  facts.time_limit_minutes = job.time_limit_minutes;
  facts.reservation = job.reservation;
  if (const cluster::Partition* partition = m.cluster.find_partition(job.partition)) {
    facts.memory = place::make_ask(m.cluster, *partition, facts.request, facts.counts).memory;
  }
  return facts;
}

void hold_again(State::Memory& m, Job& job, const wire::JobRecord& record, Time now) {
  job.running = std::make_unique<Running>(facts_again(m, job));
  m.holding.insert(job.id);
  Running& running = *job.running;
  running.node_names = job.nodes;
  running.steps.number_from(record.next_step());
  if (job.flags.configuring) running.not_begun = {job.nodes.begin(), job.nodes.end()};
  running.ready = !job.flags.configuring;
  running.not_gone = {record.waiting_nodes().begin(), record.waiting_nodes().end()};
  running.keeps_no_cores = record.keeps_no_cores();
  if (const auto from = record.gpu_idle().counts_from(); from > 0) {
    // When it stood still is not stored: what was before the last time does not count.
    running.gpu_idle.start(std::max(from, job.suspend_time));
    running.gpu_idle.warnings = record.gpu_idle().warnings();
    running.gpu_idle.last_warning = record.gpu_idle().last_warning();
  } else if (running.ready) {
    running.gpu_idle.start(now);  // a controller that had no such clock started it
  }
  m.usage->take(m.held(job));
  m.remember_giving_way(job);
  // Of a job of an older controller.
  const auto choices = license_choices(job.what->licenses);
  if (job.licenses_taken.empty() && !choices.empty()) {
    job.licenses_taken = license_text(choices.front());
  }
  m.count_licenses(job, true);
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    m.nodes[share.node].jobs.insert(job.id);
    if (job.flags.completing) m.nodes[share.node].completing.insert(job.id);
  }
  if (!job.flags.completing) m.open_batch_step(job);
}

/// The node still has the cores and the devices of the share; of how many units is not asked.
bool within(const cluster::Cluster& cluster, const cluster::NodeShare& share) {
  const cluster::Node& node = cluster.nodes[share.node];
  if (share.cores.any() && share.cores.last() >= node.cores()) return false;
  return std::ranges::all_of(share.gres, [&](const cluster::GresShare& gres) {
    const cluster::Gres* known = node.find_gres(gres.name);
    return known != nullptr && known->devices.size() == gres.units.size();
  });
}

bool within(const cluster::Cluster& cluster, const cluster::Allocation& allocation) {
  return std::ranges::all_of(
      allocation.nodes, [&](const cluster::NodeShare& share) { return within(cluster, share); });
}

/// A job of the store can have again what it held.
bool holds_still(const State::Memory& m, const Job& job, bool keeps_no_cores) {
  cluster::Allocation held = job.allocation;
  if (held.nodes.size() != job.nodes.size() || !within(m.cluster, held)) return false;
  for (cluster::NodeShare& share : held.nodes) {
    // How much memory a GPU has is what its node tells, and that may have become less.
    std::erase_if(share.gres, [](const auto& one) { return one.name == text::kGpuMemory; });
    if (keeps_no_cores) share.cores = {};
  }
  if (keeps_no_cores) held.whole_nodes = false;
  return m.fits(held, false);
}

void apply_node_changes(cluster::Node& node, const NodeState& state) {
  if (state.weight) node.weight = *state.weight;
  if (!state.features) return;
  node.features.clear();
  for (const std::string_view one : text::split(*state.features, ',')) {
    if (!one.empty()) node.features.emplace_back(one);
  }
}

}  // namespace

void State::load(const Stored& stored, const FetchAsked& fetch, Time now) {
  Memory& m = *m_;
  if (stored.next_job_id != 0) m.next_id = stored.next_job_id;
  m.leases_rest_until = stored.leases_rest_until;
  m.adopted = stored.adopted;
  for (const wire::PartitionRecord& record : stored.partitions) {
    m.partition_records[record.name()] = record;
  }
  for (const wire::NodeRecord& record : stored.nodes) {
    const auto index = m.cluster.find_node(record.name());
    if (!index) continue;
    read_record(record, m.nodes[*index]);
    apply_node_changes(m.cluster.nodes[*index], m.nodes[*index]);
    m.forget_missing_gpus(*index);
    // Jobs may hold of it what only the node knows, such as the memory of its GPUs.
    take_found_gpus(m.cluster.nodes[*index], m.nodes[*index].found_gpus);
  }
  m.usage = std::make_unique<cluster::Usage>(m.cluster);
  m.configure_power(now);
  for (cluster::NodeIndex i = 0; i < m.nodes.size(); ++i) {
    m.refresh_usable(i);
    m.nodes[i].silent_since = now;
  }
  for (const wire::ReservationRecord& record : stored.reservations) {
    reservation::Reservation one = from_record(m.cluster, record);
    m.last_reservation = std::max(m.last_reservation, one.number);
    m.reservations.emplace(record.name(), std::move(one));
  }
  std::vector<std::pair<JobId, std::string>> dependencies;
  // Elements of an array and equal submissions are read once.
  using Parts = std::vector<std::shared_ptr<const Submission>>;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Parts> read_before;
  const auto read = [&](const Job& job) -> Result<Parts> {
    const auto key = std::pair(job.asked_blob, job.uid);
    if (const auto at = read_before.find(key); at != read_before.end() && job.overrides.empty()) {
      return at->second;
    }
    const auto asked = fetch(job.asked_blob);
    if (!asked) return fail(Code::io, "its request is not in the store");
    std::vector<Message> warnings;
    auto parts = m.read(*asked, job.overrides, {job.uid, job.gid, true}, warnings,
                        true);  // it was allowed once
    if (parts && job.overrides.empty()) read_before.emplace(key, *parts);
    return parts;
  };
  for (const wire::JobRecord& record : stored.jobs) {
    Job job = from_record(m.cluster, record);
    const auto parts = read(job);
    if (!parts || record.component() >= parts->size()) {
      m.effect(Log{fmt::format("job {} cannot be read back: {}", record.id(),
                               parts ? "no such component" : parts.error().what())});
      continue;
    }
    job.what = (*parts)[record.component()];
    job.batch = job.what->request.command == request::Command::sbatch;
    job.requeue =
        record.has_requeue() ? record.requeue() : job.what->requeue.value_or(m.policy.job_requeue);
    const JobId id = job.id;
    Job& kept = m.jobs.emplace(id, std::move(job)).first->second;
    m.add_to_group(kept);
    for (const auto& [node, until] : kept.may_run_on) m.may_run[node].insert(id);
    const bool names_job = !kept.token.empty() && !(kept.het && kept.het->offset > 0);
    if (names_job) m.tokens.emplace(kept.token, id);
    m.next_id = std::max(m.next_id, id + 1);
    const bool holds = kept.flags.completing || (!ended(kept.base) && kept.base != Base::pending);
    if (holds) {
      if (holds_still(m, kept, record.keeps_no_cores())) {
        hold_again(m, kept, record, now);
        if (kept.flags.completing && kept.running->not_gone.empty()) m.all_gone(kept, now);
      } else {
        kept.base = Base::node_fail;
        kept.flags = {};
        kept.reason = "NodeDown";
        kept.end_time = now;
        for (const std::string& name : kept.nodes) {
          if (const auto index = m.cluster.find_node(name)) m.lose_sight(kept, *index, now);
        }
        m.touch(kept);
        m.effect(Log{fmt::format("job {} held what slurm.conf does not have any more", id)});
      }
    }
    if (kept.pending()) dependencies.emplace_back(id, kept.dependency);
  }
  for (const auto& [id, text] : dependencies) {
    Job& job = *m.find(id);
    m.after_priority(job.priority);
    if (!text.empty()) (void)m.set_dependency(job, text, false, now);
    m.requeue_place(job, now);
  }
  for (auto& [id, job] : m.jobs) {
    if (job.running && job.flags.configuring) m.await_nodes(job, now);
    m.arm(job);
  }
  if (!m.reservations.empty()) {
    m.reservations_changed(now);
    m.reservation_due = now;  // some may have ended meanwhile
  }
  for (cluster::NodeIndex i = 0; i < m.nodes.size(); ++i) {
    m.expect(i);
    m.look_at_power(i, now);
  }
  m.power_again(now);
  m.wake_all();
}

void State::reconfigure(cluster::Cluster cluster, Policy policy, Time now) {
  Memory& m = *m_;
  std::map<std::string, NodeState> known;
  for (cluster::NodeIndex i = 0; i < m.nodes.size(); ++i) {
    known.emplace(m.cluster.nodes[i].name, std::move(m.nodes[i]));
  }
  std::set<std::string> dirty;
  for (const cluster::NodeIndex index : std::exchange(m.dirty_nodes, {})) {
    dirty.insert(m.cluster.nodes[index].name);
  }
  const cluster::Cluster before = std::exchange(m.cluster, std::move(cluster));
  const bool was_multifactor = m.policy.priority.multifactor;
  m.policy = std::move(policy);
  m.ports.use(m.policy.ports);
  m.nodes.clear();
  m.node_timers.clear();
  for (cluster::Node& node : m.cluster.nodes) {
    const auto at = known.find(node.name);
    const bool fresh = at == known.end();
    m.nodes.push_back(fresh ? NodeState{} : std::move(at->second));
    if (fresh) m.take_configured_state(static_cast<cluster::NodeIndex>(m.nodes.size() - 1), now);
    m.nodes.back().planned = false;
    m.nodes.back().reservation.clear();
    m.nodes.back().maintenance = false;
    apply_node_changes(node, m.nodes.back());
    take_found_gpus(node, m.nodes.back().found_gpus);
  }
  m.newly_found.clear();
  m.planned_nodes.clear();
  for (const std::string& name : dirty) {
    if (const auto index = m.cluster.find_node(name)) m.dirty_nodes.insert(*index);
  }
  for (cluster::NodeIndex i = 0; i < m.nodes.size(); ++i) m.forget_missing_gpus(i);
  std::vector<JobId> lost;
  for (auto& [id, job] : m.jobs) {
    if (!job.running) continue;
    bool whole = true;
    for (cluster::NodeShare& share : job.allocation.nodes) {
      const auto index = m.cluster.find_node(before.nodes[share.node].name);
      whole = whole && index.has_value();
      if (index) share.node = *index;
    }
    std::ranges::sort(job.allocation.nodes, {}, &cluster::NodeShare::node);
    cluster::bind_to(m.cluster, job.partition, job.allocation);
    std::erase_if(job.running->leaving,
                  [&](const auto& entry) { return !m.cluster.find_node(entry.first); });
    for (auto& [name, share] : job.running->leaving) {
      share.node = *m.cluster.find_node(name);
      share.bound = cluster::bound_of(m.cluster, job.partition);
      if (within(m.cluster, share)) continue;
      share.cores = {};  // what is not there any more is not waited for
      share.gres.clear();
    }
    if (!whole || !within(m.cluster, job.allocation)) {
      job.running->released = true;
      lost.push_back(id);
      continue;
    }
    job.running->facts.allocation = job.allocation;
    place::StepState steps(job.running->facts);
    for (place::StepPlan plan : job.running->steps.running()) {
      for (place::StepNode& node : plan.nodes) {
        node.share.node = *m.cluster.find_node(before.nodes[node.share.node].name);
      }
      for (place::TaskPlan& task : plan.tasks) {
        task.node = *m.cluster.find_node(before.nodes[task.node].name);
      }
      steps.start(plan);
    }
    steps.number_from(job.running->steps.next_id());
    steps.rotation = job.running->steps.rotation;
    job.running->steps = std::move(steps);
  }
  m.reserved_nodes.clear();
  m.move_reservations(before);
  m.configure_power(now);
  m.rebuild_usage();
  m.configure_priorities(was_multifactor);
  for (cluster::NodeIndex i = 0; i < m.nodes.size(); ++i) {
    m.refresh_usable(i);
    if (m.nodes[i].responding) continue;
    m.nodes[i].silent_since = std::max(m.nodes[i].silent_since, now);
    m.expect(i);
  }
  for (const JobId id : lost) {
    Job& job = *m.find(id);
    job.allocation = {};
    for (NodeState& node : m.nodes) node.jobs.erase(id);
    m.effect(EndJob{id, job.attempt, job.nodes, "NODE FAILURE", true});
    m.end_whole(job, Base::node_fail, "NodeDown", "NODE FAILURE", true, now);
  }
  for (const auto& [name, waiting] : std::map(m.may_run)) {
    // Who takes a node out of the cluster says that it is gone; what has a lease waits for its end.
    if (m.cluster.find_node(name)) continue;
    for (const JobId id : std::set(waiting)) {
      Job& job = *m.find(id);
      if (job.may_run_on[name] == 0) m.ended_there(job, name, now);
    }
  }
  for (auto& [id, job] : m.jobs) {
    if (job.pending()) m.requeue_place(job, now);
    m.arm(job);
  }
  if (!m.reservations.empty()) m.reservations_changed(now);
  ++m.version;
}

}  // namespace berth::job
