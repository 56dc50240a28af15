#include "job/memory.h"
#include "job/first_pass.h"
#include "job/launch.h"
#include "job/record.h"
#include "job/switches.h"
#include "wire/step_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace berth::job {
State::Memory::Memory(cluster::Cluster cluster_in, Policy policy_in)
    : cluster(std::move(cluster_in)), policy(std::move(policy_in)), next_id(policy.first_job_id) {
  nodes.resize(cluster.nodes.size());
  ends_changed.keep(nodes.size() + 64);
  usage = std::make_unique<cluster::Usage>(cluster);
  priority_totals = job::priority_totals(cluster, policy);
  for (cluster::NodeIndex i = 0; i < nodes.size(); ++i) take_configured_state(i, 0);
  configure_power(0);
  ports.use(policy.ports);
  for (cluster::NodeIndex i = 0; i < nodes.size(); ++i) refresh_usable(i);
}

Job* State::Memory::find(JobId id) {
  const auto at = jobs.find(id);
  return at == jobs.end() ? nullptr : &at->second;
}

NodeState* State::Memory::find_node(std::string_view name) {
  const auto index = cluster.find_node(name);
  return index ? &nodes[*index] : nullptr;
}

void State::Memory::touch(const Job& job) {
  dirty_jobs.insert(job.id);
  changed_jobs.insert(job.id);
  sync = true;
  ++version;
}

void State::Memory::touch_node(cluster::NodeIndex index) {
  dirty_nodes.insert(index);
  sync = true;
  ++version;
}

JobId State::Memory::take_id() {
  for (;;) {
    const JobId id = next_id;
    next_id = next_id >= policy.max_job_id ? policy.first_job_id : next_id + 1;
    dirty_next_id = true;
    if (!jobs.contains(id) && !groups.contains(id)) return id;
  }
}

std::string State::Memory::next_sluid(Time now) {
  // Sorts by time: 9 base-32 digits of seconds, 4 of a counter, as Slurm's own look.
  constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  std::string out = "s";
  const auto put = [&](std::uint64_t value, int digits) {
    for (int i = digits - 1; i >= 0; --i) out += kDigits[(value >> (5 * i)) & 31U];
  };
  put(static_cast<std::uint64_t>(now), 9);
  put(sluids++, 4);
  return out;
}

void State::Memory::add_to_group(const Job& job) {
  if (job.array) groups[job.array->job_id].insert(job.id);
  if (job.het) groups[job.het->leader].insert(job.id);
}

std::uint32_t State::Memory::tier_of(const Job& job) const {
  std::uint32_t tier = 0;
  const auto look = [&](const std::string& name) {
    const auto at = policy.partitions.find(name);
    tier = std::max(tier, at == policy.partitions.end() ? 1U : at->second.priority_tier);
  };
  for (const std::string& name : job.what->request.partitions) look(name);
  if (job.what->request.partitions.empty()) {
    const cluster::Partition* standard = cluster.default_partition();
    look(standard == nullptr ? std::string() : standard->name);
  }
  return tier;
}

void State::Memory::drop_plan(Job& job) {
  if (job.planned_start == 0) return;
  job.planned_start = 0;
  job.planned_nodes.clear();
  wake_all();
}

void State::Memory::leave_queue(JobId id) {
  const auto at = keys.find(id);
  if (at == keys.end()) return;
  queue.erase(at->second);
  keys.erase(at);
}

void State::Memory::requeue_place(Job& job, Time now) {
  place_in_queue(job, now);
  if (job.pending()) job.waits.waits_for(job.reason, now);
}

QueueKey State::Memory::key_for(const Job& job) const {
  return {tier_of(job), job.priority, job.submit_time, job.id, !job.asked_reservation().empty()};
}

void State::Memory::place_in_queue(Job& job, Time now) {
  leave_queue(job.id);
  if (!job.pending()) return;
  const auto depends = dependencies.find(job.id);
  const Met met = depends == dependencies.end() ? Met::yes : depends->second.met();
  const bool held = job.held || job.priority == 0;
  const Time begin = not_before(job);
  const std::string awaited = awaited_word(job);
  const bool in_queue = !held && met == Met::yes && awaited.empty() && begin <= now;
  count_age(job, in_queue, now);
  if (!held) set_priority(job, now);
  if (held) {
    if (job.reason != "JobHeldUser" && job.reason != "JobHeldAdmin" &&
        job.reason != "job_requeued_in_held_state" && job.reason != "JobHoldMaxRequeue" &&
        job.reason != "launch_failed_requeued_held" && job.reason != "ReservationDeleted") {
      set_reason(job, job.held_by_admin ? "JobHeldAdmin" : "JobHeldUser");
    }
    return;
  }
  if (met == Met::never) {
    set_reason(job, "DependencyNeverSatisfied");
    return;
  }
  if (met == Met::no) {
    set_reason(job, "Dependency");
    return;
  }
  if (!awaited.empty()) {
    set_reason(job, "NodeDown", awaited);
    return;
  }
  if (begin > now) {
    set_reason(job, "BeginTime", begin > job.begin_time ? lease_text(job, now) : "");
    arm(job);
    return;
  }
  if (job.het && job.het->offset > 0) return;  // the leader stands for all
  if (job.eligible_time == 0) job.eligible_time = now;
  set_view(job);
  const QueueKey key = key_for(job);
  queue.insert(key);
  keys.emplace(job.id, key);
  if (!priority_due && policy.priority.multifactor && policy.priority.weight_age > 0) {
    priority_due = now + policy.priority.calc_period;
  }
  wake.arrived.push_back(job.id);
}

void State::Memory::disarm(JobId id) {
  const auto at = timer_of.find(id);
  if (at == timer_of.end()) return;
  timers.erase({at->second, id});
  timer_of.erase(at);
}

Time State::Memory::over_time(const Job& job) const {
  const auto at = policy.partitions.find(job.partition);
  const bool own = at != policy.partitions.end() && at->second.over_time_minutes;
  return Time{own ? *at->second.over_time_minutes : policy.over_time_minutes} * 60;
}

Time State::Memory::after_due(const Job& job) const {
  const auto depends = dependencies.find(job.id);
  if (depends == dependencies.end()) return 0;
  Time due = 0;
  for (const Clause& clause : depends->second.clauses) {
    if (clause.met != Met::no || clause.minutes == 0) continue;
    Time last = 0;
    for (const JobId id : records_of(clause.job)) {
      const Job& target = jobs.at(id);
      if (target.start_time == 0 || target.base == Base::pending)
        return due;  // told when it starts
      last = std::max(last, target.start_time + Time{clause.minutes} * 60);
    }
    if (last > 0 && (due == 0 || last < due)) due = last;
  }
  return due;
}

void State::Memory::note_end(const Job& job) {
  // One that stands still ends later with every second.
  constexpr Time kStandsStill = -1;
  if (!job.running || job.running->released) return;
  const Time end = job.base == Base::suspended ? kStandsStill : job.over_by();
  if (std::exchange(job.running->known_end, end) == end) return;
  for (const cluster::NodeShare& share : job.allocation.nodes) ends_changed.add(share.node);
}

void State::Memory::arm(const Job& job) {
  note_end(job);
  disarm(job.id);
  std::optional<Time> next;
  const auto at = [&](Time when) {
    if (when > 0 && (!next || when < *next)) next = when;
  };
  if (job.pending()) {
    if (job.reason == "BeginTime" && !job.held && !keys.contains(job.id)) at(not_before(job));
    at(job.deadline);
    at(after_due(job));
    const auto patience_ends = job.switch_wait_since > 0 ? any_switches_from(job, policy) : Time{0};
    if (job.last_evaluation < *patience_ends) at(*patience_ends);
    if (job.reason == "PartitionConfig" && job.last_evaluation < job.submit_time + kFirstPass) {
      at(job.submit_time + kFirstPass);
    }
  } else if (job.running && !ended(job.base) && job.base != Base::pending) {
    if (job.base == Base::running) {
      if (const auto limit = job.limit_at()) {
        at(*limit + over_time(job));
        if (job.what->warn_signal != 0 && !job.running->warned) {
          at(*limit - Time{job.what->warn_seconds});
        }
      }
      for (const auto& [id, step] : job.running->open_steps) {
        if (step.limit_at && !step.ending) at(*step.limit_at);
      }
      at(gpu_idle_due(job));
    }
    at(job.deadline);
    if (job.preempted) at(job.preempted->until);
    at(job.reservation_over);
  } else if (job.flags.completing && policy.complete_wait > 0) {
    at(job.end_time + Time{policy.complete_wait});
  } else if (ended(job.base) && !job.flags.completing) {
    at(job.end_time + job.clock_moved + Time{policy.min_job_age});
  }
  if (!next) return;
  timers.insert({*next, job.id});
  timer_of.emplace(job.id, *next);
}

void State::Memory::forget(JobId id) {
  const auto at = jobs.find(id);
  if (at == jobs.end()) return;
  Job& job = at->second;
  leave_queue(id);
  disarm(id);
  drop_dependency(id);
  forget_last_attempt(job);
  if (!job.token.empty()) tokens.erase(job.token);
  for (const JobId group : {job.array_id(), job.het ? job.het->leader : id}) {
    const auto members = groups.find(group);
    if (members == groups.end()) continue;
    members->second.erase(id);
    if (members->second.empty()) groups.erase(members);
  }
  if (dirty_jobs.erase(id) > 0) last_records.push_back(to_record(cluster, job));
  forgotten.push_back(id);
  holding.erase(id);
  jobs.erase(at);
  ++version;
}

void State::Memory::set_reason(Job& job, std::string_view reason, std::string text) {
  if (job.reason == reason && job.reason_text == text) return;
  const bool word_changed = job.reason != reason;
  job.reason = reason;
  job.reason_text = std::move(text);
  changed_jobs.insert(job.id);
  ++version;
  if (word_changed && job.pending()) {
    dirty_jobs.insert(job.id);  // not worth waiting for the disk
    if (job.interactive) effect(TellWaiting{job.id});
  }
}

void State::Memory::refresh_usable(cluster::NodeIndex index) {
  cluster::Node& node = cluster.nodes[index];
  const NodeState& state = nodes[index];
  node.usable = state.usable();
  node.state_reason = state.reason;
  if (state.power.phase == NodePower::Phase::powering_down && state.reason.empty()) {
    node.state_reason = "is being switched off";
  }
  refresh_wake(index);
  if (auto out = gpus_out_of(state); node.gpus_out != out) {
    node.gpus_out = std::move(out);
    usage->refresh_gpus_out(index);
  } else {
    usage->refresh_room(index);
  }
  if (node.usable) wake_all();
  reserved_nodes_lost = reserved_nodes_lost || !reservations.empty();
}

void State::Memory::take_configured_state(cluster::NodeIndex index, Time now) {
  cluster::Node& node = cluster.nodes[index];
  if (node.cloud && policy.power.enabled) nodes[index].power.phase = NodePower::Phase::off;
  if (node.usable || node.state_reason.empty()) return;
  // "DRAIN (being repaired)": from State= and Reason=, or DownNodes.
  const std::string_view text = node.state_reason;
  const std::string_view word = text.substr(0, text.find(' '));
  NodeState& state = nodes[index];
  state.future = word == "FUTURE";
  state.drain = word == "DRAIN";
  state.fail = word.starts_with("FAIL");
  state.down = word == "DOWN";
  if (const auto open = text.find('('); open != text.npos && text.ends_with(')')) {
    state.reason = text.substr(open + 1, text.size() - open - 2);
  } else if (!state.future) {
    state.reason = "as slurm.conf says";
  }
  if (!state.reason.empty()) state.reason_time = now;
}

void State::Memory::expect(cluster::NodeIndex index) {
  const NodeState& node = nodes[index];
  if (policy.slurmd_timeout == 0 || node.power.away()) return;
  const bool awaited = (!node.line.empty() || node.future) && !node.registered;
  const bool may_run_some = may_run.contains(cluster.nodes[index].name);
  if ((node.down || awaited) && node.jobs.empty() && !may_run_some) return;
  node_timers[index] = node.silent_since + Time{policy.slurmd_timeout};
}

void State::Memory::rebuild_usage() {
  usage = std::make_unique<cluster::Usage>(cluster);
  for (auto& [id, job] : jobs) {
    if (!job.running || job.running->released) continue;
    usage->take(held(job));
    for (const auto& [name, share] : job.running->leaving) {
      usage->take({{share}, job.allocation.whole_nodes});
    }
  }
  placeable.clear();
  ++configuration;
  wake_all();
}

bool State::Memory::fits(const cluster::Allocation& allocation, bool only_usable) const {
  for (const cluster::NodeShare& share : allocation.nodes) {
    if (share.node >= cluster.nodes.size()) return false;
    if (only_usable && !nodes[share.node].usable()) return false;
    if (!cluster::is_free(cluster.nodes[share.node], usage->at(share.node), share,
                          allocation.whole_nodes, cluster.settings.memory_is_consumed,
                          !only_usable)) {
      return false;
    }
  }
  return true;
}

bool State::Memory::licenses_free(const LicenseCounts& counts, const Job& job, Time now) const {
  for (const auto& [name, count] : counts) {
    const auto total = policy.licenses.find(name);
    const auto used = licenses_used.find(name);
    const std::uint64_t taken = used == licenses_used.end() ? 0 : used->second;
    if (total == policy.licenses.end() ||
        taken + count + licenses_kept(name, job, now) > total->second)
      return false;
  }
  return true;
}

bool State::Memory::licenses_free(const Job& job, Time now) const {
  const auto choices = license_choices(job.what->licenses);
  return choices.empty() || std::ranges::any_of(choices, [&](const LicenseCounts& counts) {
           return licenses_free(counts, job, now);
         });
}

void State::Memory::take_licenses(Job& job, Time now) {
  job.licenses_taken.clear();
  for (const LicenseCounts& counts : license_choices(job.what->licenses)) {
    if (!licenses_free(counts, job, now)) continue;
    job.licenses_taken = license_text(counts);
    break;
  }
  count_licenses(job, true);
}

void State::Memory::count_licenses(const Job& job, bool take) {
  for (const auto& [name, count] : license_counts(job.licenses_taken)) {
    std::uint64_t& used = licenses_used[name];
    used = take ? used + count : used - std::min(used, count);
  }
}

void State::Memory::open_batch_step(Job& job) {
  if (!job.batch || (job.het && job.het->offset > 0) || job.nodes.empty()) return;
  Step batch;
  batch.id = wire::kBatchStep;
  batch.name = "batch";
  batch.start = job.start_time;
  batch.nodes = {job.nodes.front()};
  batch.open_nodes = {job.nodes.front()};
  batch.task_nodes = batch.nodes;
  batch.ntasks = 1;
  batch.cpus = job.allocation.nodes.front().cpus;
  batch.tres = tres_text(cluster, {{job.allocation.nodes.front()}, false}, false);
  batch.submit_line = job.what->submit_line;
  job.running->open_steps.emplace(batch.id, std::move(batch));
}

std::vector<JobId> State::Memory::records_of(JobId id) const {
  const auto group = groups.find(id);
  if (group != groups.end()) return {group->second.begin(), group->second.end()};
  if (jobs.contains(id)) return {id};
  return {};
}

std::vector<Job*> State::Memory::components_of(const Job& job) {
  std::vector<Job*> out;
  if (!job.het) return {find(job.id)};
  for (const JobId id : records_of(job.het->leader)) {
    if (Job* part = find(id)) out.push_back(part);
  }
  return out;
}

}  // namespace berth::job
