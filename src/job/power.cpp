// Nodes on their way off and on: when they go, what a job waits for, what is due by time.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"

namespace berth::job {
namespace {

using cluster::NodeIndex;
using Phase = NodePower::Phase;

/// What cannot be told by an event (a state that keeps a node on, a number of nodes that stay on)
/// is looked at again after so many seconds.
constexpr Time kLookAgain = 60;

std::vector<std::string> partitions_of(const cluster::Cluster& cluster, NodeIndex index) {
  std::vector<std::string> out;
  for (const cluster::Partition& partition : cluster.partitions) {
    if (std::ranges::binary_search(partition.nodes, index)) out.push_back(partition.name);
  }
  return out;
}

PowerTimes times_of(const State::Memory& m, NodeIndex index) {
  const PowerPolicy& policy = m.policy.power;
  std::optional<PowerTimes> out;
  bool kept_on = false;
  for (const std::string& name : partitions_of(m.cluster, index)) {
    kept_on = kept_on ||
              std::ranges::find(policy.kept_on_partitions, name) != policy.kept_on_partitions.end();
    const auto at = m.policy.partitions.find(name);
    const PartitionPower own =
        at == m.policy.partitions.end() ? PartitionPower{} : at->second.power;
    const PowerTimes one{own.suspend.value_or(policy.suspend),
                         own.suspend_timeout.value_or(policy.suspend_timeout),
                         own.resume_timeout.value_or(policy.resume_timeout)};
    if (!out) {
      out = one;
      continue;
    }
    out->suspend = std::max(out->suspend, one.suspend);
    out->suspend_timeout = std::max(out->suspend_timeout, one.suspend_timeout);
    out->resume_timeout = std::max(out->resume_timeout, one.resume_timeout);
  }
  if (!out) out = {policy.suspend, policy.suspend_timeout, policy.resume_timeout};
  const std::string& name = m.cluster.nodes[index].name;
  if (const auto at = policy.suspend_of_node.find(name); at != policy.suspend_of_node.end()) {
    out->suspend = at->second;
  }
  for (const PowerPolicy::KeptOn& one : policy.kept_on) {
    if (!one.count && std::ranges::find(one.nodes, name) != one.nodes.end()) kept_on = true;
  }
  if (kept_on) out->suspend = kNeverSwitchedOff;
  out->resume_timeout = std::max(out->resume_timeout, 1U);
  return *out;
}

/// SuspendExcStates.
bool kept_by_state(const State::Memory& m, NodeIndex index) {
  const NodeState& node = m.nodes[index];
  return std::ranges::any_of(m.policy.power.kept_on_states, [&](const std::string& state) {
    if (state == "CLOUD") return m.cluster.nodes[index].cloud;
    if (state == "DOWN") return node.down;
    if (state == "DRAIN") return node.drain;
    if (state == "FAIL") return node.fail;
    if (state == "INVALID_REG") return node.invalid;
    if (state == "NOT_RESPONDING") return !node.responding;
    if (state == "PLANNED") return node.planned;
    if (state == "DYNAMIC_NORM") return !node.line.empty();
    if (state == "DYNAMIC_FUTURE") return node.future;
    if (state == "MAINTENANCE") return node.maintenance;
    if (state == "RESERVED") return !node.reservation.empty();
    return false;  // PERFCTRS: a state that no node has
  });
}

/// SuspendExcNodes=n[1-8]:2: this one is needed to have so many that can be used at once.
bool kept_by_count(const State::Memory& m, NodeIndex index) {
  const std::string& name = m.cluster.nodes[index].name;
  return std::ranges::any_of(m.policy.power.kept_on, [&](const PowerPolicy::KeptOn& one) {
    if (!one.count || std::ranges::find(one.nodes, name) == one.nodes.end()) return false;
    std::uint32_t ready = 0;
    for (const std::string& other : one.nodes) {
      const auto at = m.cluster.find_node(other);
      if (!at) continue;
      const NodeState& node = m.nodes[*at];
      if (node.power.phase == Phase::on && node.jobs.empty() && node.usable()) ++ready;
    }
    return m.nodes[index].usable() && ready <= *one.count;
  });
}

void set_due(State::Memory& m, NodeIndex index, std::optional<Time> when) {
  Time& known = m.power.due_of[index];
  if (known > 0) m.power.due.erase({known, index});
  known = when.value_or(0);
  if (when) m.power.due.emplace(*when, index);
}

/// `since`: other than now where the phase waits for its turn (0) or goes on from before.
void enter(State::Memory& m, NodeIndex index, Phase phase, Time now,
           std::optional<Time> since = std::nullopt) {
  NodePower& power = m.nodes[index].power;
  power.phase = phase;
  power.since = since.value_or(now);
  power.told = false;
  if (phase != Phase::going) power.no_new_jobs = false;
  if (phase != Phase::powering_down) power.up_next = false;
  if (phase != Phase::powering_up) power.down_next = false;
  if (power.away()) m.node_timers.erase(index);
  m.refresh_usable(index);
  m.touch_node(index);
  m.look_at_power(index, now);
}

void begin_down(State::Memory& m, NodeIndex index, Time now) {
  if (!m.power.down_rate.take(m.policy.power.suspend_rate, now)) {
    set_due(m, index, m.power.down_rate.next());
    return;
  }
  m.power.down_now.push_back(index);
  enter(m, index, Phase::powering_down, now);
}

void begin_up(State::Memory& m, NodeIndex index, Time now) {
  if (!m.power.up_rate.take(m.policy.power.resume_rate, now)) {
    set_due(m, index, m.power.up_rate.next());
    return;
  }
  NodePower& power = m.nodes[index].power;
  power.since = now;
  m.power.up_now.push_back(index);
  m.touch_node(index);
  for (const JobId id : m.nodes[index].jobs) {
    if (Job* job = m.find(id)) m.await_nodes(*job, now);
  }
  m.look_at_power(index, now);
}

/// ResumeTimeout is over.
void did_not_come(State::Memory& m, NodeIndex index, Time now) {
  const std::string name = m.cluster.nodes[index].name;
  m.effect(
      Log{fmt::format("node {} not resumed by ResumeTimeout({}), setting DOWN and POWERED_DOWN",
                      name, m.power.times[index].resume_timeout)});
  NodeState& node = m.nodes[index];
  node.down = true;
  node.reason = "ResumeTimeout reached";
  node.reason_uid = 0;
  node.reason_time = now;
  m.power.failed_now.push_back(index);
  enter(m, index, Phase::off, now, node.power.since);  // one that was slow to boot may still come
  const std::set<JobId> here = node.jobs;
  for (const JobId id : here) {
    if (Job* job = m.find(id)) m.fail_on_node(*job, name, now);
  }
}

void due(State::Memory& m, NodeIndex index, Time now) {
  const NodePower& power = m.nodes[index].power;
  switch (power.phase) {
    case Phase::on:
      if (kept_by_state(m, index) || kept_by_count(m, index)) {
        set_due(m, index, now + kLookAgain);
      } else {
        begin_down(m, index, now);
      }
      return;
    case Phase::going:
      return begin_down(m, index, now);
    case Phase::powering_down: {
      const bool up_next = power.up_next;
      enter(m, index, Phase::off, now);
      m.nothing_runs_on(m.cluster.nodes[index].name, now);
      if (up_next) m.power_up(index, now);
      return;
    }
    case Phase::off:
      return;
    case Phase::powering_up:
      return power.since == 0 ? begin_up(m, index, now) : did_not_come(m, index, now);
  }
}

}  // namespace

void State::Memory::configure_power(Time now) {
  power.enabled = policy.power.enabled;
  power.due.clear();
  power.due_of.assign(nodes.size(), 0);
  power.times.clear();
  power.asleep = 0;
  power.longest_wake = 0;
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    cluster.nodes[i].wake_seconds = 0;
    if (!power.enabled) nodes[i].power = {};
    if (nodes[i].registered && nodes[i].power.since == 0) nodes[i].power.since = now;
  }
  if (!power.enabled) return;
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    power.times.push_back(times_of(*this, i));
    power.longest_wake = std::max<Time>(power.longest_wake, power.times[i].resume_timeout);
  }
  for (NodeIndex i = 0; i < nodes.size(); ++i) look_at_power(i, now);
}

void State::Memory::look_at_power(NodeIndex index, Time now) {
  if (!power.enabled) return;
  const NodeState& node = nodes[index];
  const PowerTimes& times = power.times[index];
  switch (node.power.phase) {
    case Phase::on: {
      const bool may =
          node.jobs.empty() && times.suspend != kNeverSwitchedOff && node.power.since > 0;
      const Time idle_since = std::max(node.last_busy, node.power.since);
      return set_due(*this, index, may ? std::optional(idle_since + times.suspend) : std::nullopt);
    }
    case Phase::going:
      return set_due(*this, index,
                     node.jobs.empty() ? std::optional(std::max<Time>(now, 1)) : std::nullopt);
    case Phase::powering_down:
      return set_due(*this, index, node.power.since + times.suspend_timeout);
    case Phase::off:
      return set_due(*this, index, std::nullopt);
    case Phase::powering_up:
      return set_due(*this, index,
                     node.power.since == 0 ? now : node.power.since + times.resume_timeout);
  }
}

void State::Memory::refresh_wake(NodeIndex index) {
  if (!power.enabled) return;
  cluster::Node& node = cluster.nodes[index];
  const bool slept = node.wake_seconds > 0;
  const bool sleeps = nodes[index].power.wakes();
  node.wake_seconds = sleeps ? power.times[index].resume_timeout : 0;
  power.asleep += (sleeps ? 1 : 0) - (slept ? 1 : 0);
}

void State::Memory::power_up(NodeIndex index, Time now) {
  NodePower& state = nodes[index].power;
  if (state.phase == Phase::going) {
    enter(*this, index, Phase::on, now);
  } else if (state.phase == Phase::powering_down) {
    state.up_next = true;
    touch_node(index);
  } else if (state.phase == Phase::off) {
    enter(*this, index, Phase::powering_up, now, 0);
    begin_up(*this, index, now);
  } else {
    state.down_next = false;
  }
}

void State::Memory::power_down(NodeIndex index, bool no_new_jobs, Time now) {
  NodePower& state = nodes[index].power;
  if (state.phase == Phase::powering_down) {
    state.up_next = false;
    touch_node(index);
  } else if (state.phase == Phase::powering_up) {
    state.down_next = true;
    touch_node(index);
  } else {
    enter(*this, index, Phase::going, now);
    state.no_new_jobs = no_new_jobs;
    refresh_usable(index);
    if (nodes[index].jobs.empty()) begin_down(*this, index, now);
  }
}

void State::Memory::power_idle(const Job& job, NodeIndex index, Time now) {
  if (!power.enabled) return;
  const auto at = policy.partitions.find(job.partition);
  const bool at_once = at != policy.partitions.end() && at->second.power.when_idle;
  if (at_once && nodes[index].jobs.empty() && nodes[index].power.phase == Phase::on &&
      power.times[index].suspend != kNeverSwitchedOff) {
    return power_down(index, false, now);
  }
  look_at_power(index, now);
}

void State::Memory::await_nodes(Job& job, Time now) {
  if (!power.enabled || !job.running) return;
  Running& running = *job.running;
  running.booting.clear();
  running.boot_until = 0;
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    const NodePower& state = nodes[share.node].power;
    if (!state.wakes()) continue;
    running.booting.insert(cluster.nodes[share.node].name);
    const Time since = state.phase == Phase::powering_up && state.since > 0 ? state.since : now;
    running.boot_until =
        std::max(running.boot_until, since + power.times[share.node].resume_timeout);
  }
  arm(job);
}

void State::Memory::wake_nodes(Job& job, Time now) {
  if (!power.enabled) return;
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    if (nodes[share.node].power.phase == Phase::off) power_up(share.node, now);
    look_at_power(share.node, now);
  }
  await_nodes(job, now);
}

bool State::Memory::waits_for_power(const Job& job) const {
  if (!power.enabled || !job.running) return false;
  if (!job.het) return !job.running->booting.empty();
  return std::ranges::any_of(records_of(job.het->leader), [&](JobId id) {
    const auto at = jobs.find(id);
    return at != jobs.end() && at->second.running && !at->second.running->booting.empty();
  });
}

void State::Memory::node_is_up(NodeIndex index, bool same_boot, Time now) {
  if (!power.enabled) return;
  NodeState& node = nodes[index];
  const NodePower before = node.power;
  if (before.phase == Phase::powering_down) return;  // it has not noticed yet
  // Who was switched off and reports from before that has never gone: its agent only came back.
  if (before.phase == Phase::off && same_boot) return;
  if (before.phase == Phase::on || before.phase == Phase::going) {
    if (before.since == 0) node.power.since = now;
    look_at_power(index, now);
    return;
  }
  node.last_busy = now;
  enter(*this, index, Phase::on, now);
  const std::string name = cluster.nodes[index].name;
  const std::set<JobId> here = node.jobs;
  for (const JobId id : here) {
    Job* job = find(id);
    if (job == nullptr || !job->running || job->running->booting.erase(name) == 0) continue;
    if (waits_for_power(*job) || job->flags.completing) continue;
    for (Job* part : components_of(*job)) {
      // Its time begins when its nodes are there.
      if (!part->running || part->flags.completing) continue;
      part->start_time = now;
      part->running->boot_until = 0;
      for (auto& [step_id, step] : part->running->open_steps) step.start = now;
      arm(*part);
      touch(*part);
      effect(BeginJob{part->id, part->nodes});
    }
  }
  if (before.down_next) power_down(index, false, now);
}

void State::Memory::power_tick(Time now) {
  if (!power.enabled) return;
  std::vector<NodeIndex> which;
  for (const auto& [when, index] : power.due) {
    if (when > now) break;
    which.push_back(index);
  }
  for (const NodeIndex index : which) {
    if (power.due_of[index] > now || power.due_of[index] == 0) continue;  // another took it along
    set_due(*this, index, std::nullopt);
    due(*this, index, now);
  }
}

void State::Memory::power_again(Time now) {
  if (!power.enabled) return;
  // What was stored and never done because the controller stopped in between.
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    NodePower& state = nodes[i].power;
    if (state.told || !state.away() || state.phase == Phase::off) continue;
    if (state.phase == Phase::powering_up) {
      state.since = 0;
      begin_up(*this, i, now);
    } else {
      state.since = now;
      power.down_now.push_back(i);
      look_at_power(i, now);
    }
  }
}

void State::Memory::flush_power() {
  const auto send = [&](std::vector<NodeIndex>& which, SwitchNodes::What what) {
    if (which.empty()) return;
    std::ranges::sort(which);
    SwitchNodes out{what, {}};
    for (const NodeIndex index : which) out.nodes.push_back(cluster.nodes[index].name);
    which.clear();
    effect(std::move(out));
  };
  send(power.down_now, SwitchNodes::What::off);
  send(power.up_now, SwitchNodes::What::on);
  send(power.failed_now, SwitchNodes::What::failed);
}

std::optional<Waking> State::waking(const Job& job) const {
  if (!job.running || job.running->booting.empty()) return std::nullopt;
  Waking out;
  for (const std::string& name : job.running->booting) {
    const NodeState* node = find_node(name);
    out.nodes.push_back(name);
    if (node == nullptr || node->power.since == 0) continue;
    out.since = out.since == 0 ? node->power.since : std::min(out.since, node->power.since);
  }
  out.until = job.running->boot_until;
  return out;
}

Time State::wake_seconds() const {
  return m_->power.asleep > 0 ? m_->power.longest_wake : 0;
}

std::optional<std::uint32_t> State::suspend_seconds(NodeIndex index) const {
  if (!m_->power.enabled) return std::nullopt;
  const std::uint32_t seconds = m_->power.times[index].suspend;
  return seconds == kNeverSwitchedOff ? std::nullopt : std::optional(seconds);
}

void State::power_told(const std::vector<std::string>& nodes) {
  for (const std::string& name : nodes) {
    const auto index = m_->cluster.find_node(name);
    if (!index || !m_->nodes[*index].power.away()) continue;
    m_->nodes[*index].power.told = true;
    m_->touch_node(*index);
  }
}

}  // namespace berth::job
