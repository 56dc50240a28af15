// What nodes say and what is done to them: registration, silence, drain, down, resume.
#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "job/memory.h"
#include "text/words.h"

namespace berth::job {
namespace {

/// Of a node that scontrol created, until its agent comes.
constexpr std::string_view kAwaited = "waits for its agent to register";

/// Why a node that registers is not what slurm.conf says; "" = it is.
std::string shortfall(const cluster::Node& node, const wire::NodeReport& report) {
  if (report.memory_mb() > 0 && report.memory_mb() < node.memory_mb) {
    return fmt::format("Low RealMemory (reported:{} < 100.00% of configured:{})",
                       report.memory_mb(), node.memory_mb);
  }
  const std::uint64_t cpus = std::uint64_t{report.sockets()} * report.cores_per_socket() *
                             std::max(report.threads_per_core(), 1U);
  if (cpus > 0 && cpus < node.cpus()) return "Low CPUs";
  const std::uint64_t cores = std::uint64_t{report.sockets()} * report.cores_per_socket();
  if (cores > 0 && cores < node.cores()) return "Low socket*core count";
  if (report.tmp_disk_mb() < node.tmp_disk_mb) return "Low TmpDisk";
  for (const cluster::Gres& gres : node.gres) {
    if (gres.is_told()) continue;  // nobody configures how much that is
    std::uint64_t found = 0;
    for (const wire::GresFound& one : report.gres()) {
      if (one.name() == gres.name) found += one.count();
    }
    if (found < gres.total()) {
      return fmt::format("gres/{} count reported lower than configured ({} < {})", gres.name, found,
                         gres.total());
    }
  }
  return report.gres_fault();
}

void give_reason(NodeState& node, std::string reason, std::uint32_t uid, Time now) {
  node.reason = std::move(reason);
  node.reason_uid = uid;
  node.reason_time = now;
}

void clear_reason(NodeState& node) {
  give_reason(node, "", 0, 0);
}

/// Jobs that should be on the node against those that it has.
void compare_jobs(State::Memory& m, cluster::NodeIndex index, const wire::NodeReport& report,
                  Time now) {
  const std::string& name = report.name();
  std::map<JobId, const wire::HeldJob*> held;
  for (const wire::HeldJob& one : report.jobs()) held[one.job_id()] = &one;
  const std::set<JobId> ours = m.nodes[index].jobs;
  for (const JobId id : ours) {
    Job* job = m.find(id);
    if (job == nullptr || !job->running) continue;
    const auto at = held.find(id);
    const bool knows = at != held.end() && at->second->attempt() == job->attempt;
    if (knows && at->second->ending() && !job->flags.completing) {
      m.effect(Log{fmt::format(
          "{} has ended job {}, which had lost its controller for longer than its lease", name,
          id)});
      m.fail_on_node(*job, name, now);
      continue;
    }
    if (job->flags.completing) {
      if (!knows) {
        // It has nothing of the job (any more).
        job->running->not_gone.erase(name);
        m.nodes[index].completing.erase(id);
        if (job->running->not_gone.empty()) m.all_gone(*job, now);
      } else {
        m.effect(EndJob{id, job->attempt, {name}, job->end_cause, false});
      }
      continue;
    }
    if (m.waits_for_power(*job)) continue;  // it begins when all its nodes are up
    if (knows && at->second->lost()) {
      m.effect(Log{fmt::format("{} was started anew while job {} was there", name, id)});
      m.fail_on_node(*job, name, now);
      continue;
    }
    if (knows) {
      if (job->running->not_begun.contains(name)) m.effect(BeginJob{id, {name}});
      continue;
    }
    if (job->running->not_begun.contains(name)) {
      m.effect(BeginJob{id, {name}});
    } else {
      m.effect(Log{fmt::format("{} has lost job {}", name, id)});
      m.fail_on_node(*job, name, now);
    }
  }
  for (const auto& [id, one] : held) {
    const Job* job = m.find(id);
    const bool here = job != nullptr && job->running && job->attempt == one->attempt() &&
                      std::ranges::find(job->nodes, name) != job->nodes.end();
    if (!here) m.effect(EndJob{id, one->attempt(), {name}, "", true});
  }
}

/// Steps that were seen to run there and do not any more.
void compare_steps(State::Memory& m, State& state, cluster::NodeIndex index,
                   const wire::NodeReport& report, Time now) {
  std::set<std::pair<JobId, std::uint32_t>> alive;
  for (const wire::RunningStep& one : report.steps()) {
    wire::StepSpec spec;
    if (!spec.ParseFromString(one.spec())) continue;
    alive.emplace(spec.job_id(), spec.step_id());
    state.step_started(spec, report.name(), now);
  }
  const std::set<JobId> ours = m.nodes[index].jobs;
  for (const JobId id : ours) {
    Job* job = m.find(id);
    if (job == nullptr || !job->running) continue;
    std::vector<std::uint32_t> lost;
    for (const auto& [step_id, step] : job->running->open_steps) {
      if (step.started_nodes.contains(report.name()) && step.open_nodes.contains(report.name()) &&
          !alive.contains({id, step_id})) {
        lost.push_back(step_id);
      }
    }
    for (const std::uint32_t step_id : lost) {
      wire::StepEnded ended_message;
      ended_message.set_node(report.name());
      ended_message.set_job_id(id);
      ended_message.set_attempt(job->attempt);
      ended_message.set_step_id(step_id);
      ended_message.set_system_failure(true);
      ended_message.set_ended(now);
      state.step_ended(ended_message, now);
    }
  }
}

/// Where nobody switches nodes, POWER_DOWN_FORCE of a silent one is an administrator's word that
/// its machine is off: nothing runs there any more.
Result<void> said_to_be_off(State::Memory& m, cluster::NodeIndex index, Time now) {
  NodeState& node = m.nodes[index];
  const std::string name = m.cluster.nodes[index].name;
  if (node.responding) {
    return fail(Code::bad_value, fmt::format("node {} responds: it is not off", name),
                "DRAIN lets its jobs end, DOWN ends them");
  }
  if (!node.down && node.reason.empty()) give_reason(node, "Not responding", 0, now);
  node.down = true;
  m.node_timers.erase(index);
  const std::set<JobId> here = node.jobs;
  for (const JobId id : here) {
    if (Job* job = m.find(id)) m.fail_on_node(*job, name, now);
  }
  m.nothing_runs_on(name, now);
  return {};
}

/// scontrol update State=POWER_*.
Result<void> change_power(State::Memory& m, cluster::NodeIndex index, std::string_view state,
                          Time now) {
  if (!m.power.enabled && state == "POWER_DOWN_FORCE") return said_to_be_off(m, index, now);
  if (!m.power.enabled) {
    return fail(Code::bad_value, fmt::format("Invalid node state specified: {}", state),
                "nodes are switched by SuspendProgram and ResumeProgram, which slurm.conf does not "
                "name");
  }
  if (state == "POWER_UP") {
    m.power_up(index, now);
    return {};
  }
  m.power_down(index, state != "POWER_DOWN", now);
  if (state != "POWER_DOWN_FORCE") return {};
  const std::set<JobId> here = m.nodes[index].jobs;
  for (const JobId id : here) {
    if (Job* job = m.find(id)) m.fail_on_node(*job, m.cluster.nodes[index].name, now);
  }
  NodeState& node = m.nodes[index];
  node.drain = node.down = node.fail = false;
  clear_reason(node);
  return {};
}

}  // namespace

Result<void> State::register_node(const wire::NodeReport& report, const wire::RegisterNodes& agent,
                                  Time now) {
  Memory& m = *m_;
  const auto index = m.cluster.find_node(report.name());
  if (!index) {
    return fail(Code::invalid_node_name, fmt::format("{} is not in slurm.conf", report.name()));
  }
  NodeState& node = m.nodes[*index];
  const bool same_boot = !node.boot_id.empty() && node.boot_id == report.boot_id();
  const bool rebooted = !node.boot_id.empty() && !report.boot_id().empty() && !same_boot &&
                        !node.power.away();  // else it was asked to
  node.registered = node.responding = true;
  node.future = false;
  node.unknown_since_start = false;
  node.silent_since = 0;
  m.node_timers.erase(*index);
  node.boot_time = report.boot_time();
  node.boot_id = report.boot_id();
  node.agent_started = agent.started();
  node.arch = report.arch();
  node.os = report.os();
  node.host = report.host();
  node.version = agent.version();
  node.address = agent.address();
  node.address.set_node(report.name());
  const std::string less = m.policy.config_overrides || agent.emulated()
                               ? ""
                               : shortfall(m.cluster.nodes[*index], report);
  if (!less.empty()) {
    if (!node.invalid) give_reason(node, cut_text(less, kMostReason), 0, now);
    node.invalid = true;
  } else if (node.invalid) {
    node.invalid = false;
    if (!node.drain && !node.down && !node.fail) clear_reason(node);
  }
  if (node.reason == kAwaited) clear_reason(node);
  if (node.down && less.empty()) {
    const bool silent = node.reason == "Not responding" || node.reason == "ResumeTimeout reached";
    const bool back =
        m.policy.return_to_service == 2 || (m.policy.return_to_service == 1 && silent);
    if (back) {
      node.down = false;
      if (!node.drain && !node.fail) clear_reason(node);
    }
  }
  if (rebooted && !node.down && m.policy.return_to_service != 2 && !agent.emulated()) {
    node.down = true;
    give_reason(node, "Node unexpectedly rebooted", 0, now);
  }
  node.gpus_unwatched = report.gpus_unwatched();
  if (!agent.emulated()) m.note_gpus(*index, report, now);
  m.take_gpus_out(*index, report.gpus_out());
  m.refresh_usable(*index);
  m.touch_node(*index);
  if (node.down) {
    const std::set<JobId> here = node.jobs;
    for (const JobId id : here) {
      if (Job* job = m.find(id); job != nullptr && rebooted)
        m.fail_on_node(*job, report.name(), now);
    }
  }
  compare_jobs(m, *index, report, now);
  m.hear_of_last_attempts(report, now);
  compare_steps(m, *this, *index, report, now);
  m.node_is_up(*index, same_boot, now);
  // Steps that waited for this node.
  const std::set<JobId> here = node.jobs;
  for (const JobId id : here) {
    Job* job = m.find(id);
    if (job == nullptr) continue;
    m.retry_waiting(*job, now);
    m.ask_gpu_idle_again(*job, report.name());
  }
  return {};
}

void State::node_beat(std::string_view name, const wire::Beat& beat) {
  NodeState* node = m_->find_node(name);
  if (node == nullptr) return;
  node->load = beat.load();
  if (beat.free_memory_mb() > 0) node->free_memory_mb = beat.free_memory_mb();
  node->clock_ahead =
      std::clamp<Time>(beat.clock_ahead_seconds(), -NodeState::kMostAhead, NodeState::kMostAhead);
}

void State::node_lost(std::string_view name, Time heard) {
  Memory& m = *m_;
  const auto index = m.cluster.find_node(name);
  if (!index || !m.nodes[*index].responding) return;
  NodeState& node = m.nodes[*index];
  node.responding = false;
  node.silent_since = heard;
  m.expect(*index);
  m.refresh_usable(*index);
  ++m.version;
}

bool State::node_heard(std::string_view name, Time now) {
  Memory& m = *m_;
  const auto index = m.cluster.find_node(name);
  if (!index) return true;
  NodeState& node = m.nodes[*index];
  // One that an administrator set to NORESP stays so until it registers.
  if (node.responding || node.silent_since == 0) return true;
  if (node.down) return false;
  node.responding = true;
  node.silent_since = 0;
  m.node_timers.erase(*index);
  m.refresh_usable(*index);
  const std::set<JobId> here = node.jobs;
  for (const JobId id : here) {
    if (Job* job = m.find(id)) m.retry_waiting(*job, now);
  }
  ++m.version;
  return true;
}

void State::stood_still(Time now) {
  Memory& m = *m_;
  for (cluster::NodeIndex i = 0; i < m.nodes.size(); ++i) {
    if (m.nodes[i].silent_since == 0 || !m.node_timers.contains(i)) continue;
    m.nodes[i].silent_since = now;
    m.expect(i);
  }
}

void State::node_trouble(std::string_view name, const std::string& reason, Time now) {
  Memory& m = *m_;
  const auto index = m.cluster.find_node(name);
  if (index) m.drain(*index, reason, now);
}

void State::Memory::drain(cluster::NodeIndex index, const std::string& reason, Time now) {
  NodeState& node = nodes[index];
  if (!node.drain) give_reason(node, cut_text(reason, kMostReason), 0, now);
  node.drain = true;
  refresh_usable(index);
  touch_node(index);
}

Result<void> State::change_node(std::string_view name, const NodeChange& change, Time now) {
  Memory& m = *m_;
  if (!change.caller.privileged) return pass(job_error(JobFault::not_yours));
  const auto index = m.cluster.find_node(name);
  if (!index) return fail(Code::invalid_node_name, "Invalid node name specified");
  NodeState& node = m.nodes[*index];
  const std::string state = change.state.value_or("");
  const bool needs_reason = state == "DRAIN" || state == "DOWN" || state == "FAIL";
  if (needs_reason && node.reason.empty() && change.reason.value_or("").empty()) {
    return fail(Code::bad_value, "You must specify a reason when DOWNING a node. Request denied");
  }
  if (change.reason) give_reason(node, *change.reason, change.caller.uid, now);
  if (change.comment) node.comment = *change.comment;
  if (change.extra) node.extra = *change.extra;
  bool hardware = false;
  if (change.weight) {
    node.weight = change.weight;
    m.cluster.nodes[*index].weight = *change.weight;
    hardware = true;
  }
  if (change.features) {
    node.features = change.features;
    auto& features = m.cluster.nodes[*index].features;
    features.clear();
    for (const std::string_view one : text::split(*change.features, ',')) {
      if (!one.empty()) features.emplace_back(one);
    }
    hardware = true;
  }
  bool failed = false;
  if (state == "DRAIN") {
    node.drain = true;
  } else if (state == "FAIL") {
    node.fail = true;
  } else if (state == "DOWN") {
    failed = !node.down;
    node.down = true;
    m.node_timers.erase(*index);
  } else if (state == "RESUME" || state == "IDLE" || state == "UNDRAIN") {
    node.drain = false;
    if (state != "UNDRAIN") node.down = node.fail = false;
    if (!node.down && !node.fail && !node.invalid) clear_reason(node);
  } else if (state == "NORESP") {
    node.responding = false;
  } else if (state.starts_with("POWER_")) {
    if (auto done = change_power(m, *index, state, now); !done) return done;
  } else if (!state.empty()) {
    return fail(Code::bad_value, "Invalid node state specified");
  }
  if (hardware) m.rebuild_usage();
  m.refresh_usable(*index);
  m.look_at_power(*index, now);
  m.touch_node(*index);
  if (failed) {
    const std::set<JobId> here = node.jobs;
    const std::string node_name(name);
    for (const JobId id : here) {
      Job* job = m.find(id);
      if (job == nullptr) continue;
      if (node.responding && job->running) {  // it can still be told
        m.effect(EndJob{id, job->attempt, {node_name}, "NODE FAILURE", true});
      }
      m.fail_on_node(*job, node_name, now);
    }
  }
  return {};
}

void State::keep_node(std::string_view name, std::string line, Time now) {
  Memory& m = *m_;
  const auto index = m.cluster.find_node(name);
  if (!index) return;
  NodeState& node = m.nodes[*index];
  node.line = std::move(line);
  m.dropped_nodes.erase(std::string(name));
  m.node_timers.erase(*index);
  if (!node.registered && !node.future && node.reason.empty()) {
    give_reason(node, std::string(kAwaited), 0, now);
  }
  m.refresh_usable(*index);
  m.touch_node(*index);
}

void State::drop_node(std::string_view name) {
  Memory& m = *m_;
  const auto index = m.cluster.find_node(name);
  if (index) m.dirty_nodes.erase(*index);
  m.dropped_nodes.emplace(name);
  m.sync = true;
  ++m.version;
}

void State::set_planned_nodes(const std::set<cluster::NodeIndex>& nodes) {
  Memory& m = *m_;
  if (nodes == m.planned_nodes) return;
  const auto mark = [&](const std::set<cluster::NodeIndex>& which, bool planned) {
    for (const cluster::NodeIndex index : which) {
      if (index >= m.nodes.size() || m.nodes[index].planned == planned) continue;
      m.nodes[index].planned = planned;
      m.changed_nodes.insert(m.cluster.nodes[index].name);
    }
  };
  std::set<cluster::NodeIndex> gone;
  std::ranges::set_difference(m.planned_nodes, nodes, std::inserter(gone, gone.end()));
  mark(gone, false);
  mark(nodes, true);
  m.planned_nodes = nodes;
  ++m.version;
}

}  // namespace berth::job
