#include "controller/info_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/change_conf.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::controller {
namespace {

/// What Slurm programs compare versions with.
constexpr std::string_view kShownVersion = "26.11.0";

bool has_flag(const wire::NodeInfo& node, std::string_view flag) {
  return std::ranges::find(node.flags(), flag) != node.flags().end();
}

std::string base_state(const job::NodeState& known, const cluster::Node& node,
                       const cluster::NodeUsage& usage) {
  if (known.down) return "DOWN";
  if (known.future) return "FUTURE";
  if (!known.registered && !known.power.away())
    return known.unknown_since_start ? "UNKNOWN" : "DOWN";
  if (known.jobs.size() == known.completing.size()) return "IDLE";
  const bool full = usage.closed || (usage.cores | node.reserved_cores).count() >= node.cores();
  return full ? "ALLOCATED" : "MIXED";
}

void put_power(wire::NodeInfo& out, const job::NodePower& power) {
  using Phase = job::NodePower::Phase;
  switch (power.phase) {
    case Phase::on:
      return;
    case Phase::going:
      out.add_flags("POWER_DOWN");
      if (power.no_new_jobs && !has_flag(out, "DRAIN")) out.add_flags("DRAIN");
      return;
    case Phase::powering_down:
      out.add_flags("POWERING_DOWN");
      return;
    case Phase::off:
      out.add_flags("POWERED_DOWN");
      return;
    case Phase::powering_up:
      out.add_flags("POWERING_UP");
      if (power.down_next) out.add_flags("POWER_DOWN");
      return;
  }
}

void put_state(wire::NodeInfo& out, const job::NodeState& known, const cluster::Node& node,
               const cluster::NodeUsage& usage) {
  out.set_state(base_state(known, node, usage));
  if (node.cloud) out.add_flags("CLOUD");
  if (!known.completing.empty()) out.add_flags("COMPLETING");
  if (known.drain) out.add_flags("DRAIN");
  if (known.fail) out.add_flags("FAIL");
  // A node without anything left shows what it has, not what it is going to have.
  if (known.planned && out.state() != "ALLOCATED") out.add_flags("PLANNED");
  if (!known.reservation.empty()) out.add_flags(known.maintenance ? "MAINT" : "RESERVED");
  if (!known.line.empty()) out.add_flags("DYNAMIC_NORM");
  if (known.invalid) out.add_flags("INVALID_REG");
  if (!known.responding && !known.power.away()) out.add_flags("NOT_RESPONDING");
  put_power(out, known.power);
}

std::string_view state_word(cluster::PartitionState state) {
  switch (state) {
    case cluster::PartitionState::up:
      return "UP";
    case cluster::PartitionState::down:
      return "DOWN";
    case cluster::PartitionState::drain:
      return "DRAIN";
    case cluster::PartitionState::inactive:
      return "INACTIVE";
  }
  return "UP";
}

/// Names in Nodes= that are no host lists: ALL and node sets.
std::string sets_of(const conf::PartitionLine& line, const conf::SlurmConf& conf) {
  std::string out;
  if (!line.nodes) return out;
  for (const std::string_view word : text::split(line.nodes->value, ',')) {
    const bool set = std::ranges::any_of(
        conf.node_sets, [&](const conf::NodeSetLine& known) { return known.name == word; });
    if (!set && word != "ALL") continue;
    if (!out.empty()) out += ',';
    out += word;
  }
  return out;
}

void put_rules(wire::PartitionInfo& out, const conf::PartitionLine& line,
               const conf::SlurmConf& conf) {
  if (line.over_subscribe) out.set_over_subscribe(text::to_upper(line.over_subscribe->value));
  if (line.exclusive) out.set_exclusive(text::to_upper(line.exclusive->value));
  if (line.rules.allow_groups) out.set_allow_groups(line.rules.allow_groups->value);
  if (line.rules.allow_accounts) out.set_allow_accounts(line.rules.allow_accounts->value);
  if (line.rules.allow_qos) out.set_allow_qos(line.rules.allow_qos->value);
  if (line.rules.hidden) out.set_hidden(line.rules.hidden->value);
  if (line.rules.root_only) out.set_root_only(line.rules.root_only->value);
  if (line.rules.disable_root_jobs) out.set_disable_root(line.rules.disable_root_jobs->value);
  out.set_node_sets(sets_of(line, conf));
}

void put_limits(wire::PartitionInfo& out, const cluster::Partition& partition,
                const cluster::Settings& settings) {
  const auto either = [](const auto& own, const auto& general) { return own ? own : general; };
  if (partition.max_time_minutes) out.set_max_time_minutes(*partition.max_time_minutes);
  if (partition.default_time_minutes) out.set_default_time_minutes(*partition.default_time_minutes);
  out.set_min_nodes(partition.min_nodes);
  if (partition.max_nodes) out.set_max_nodes(*partition.max_nodes);
  if (partition.max_cpus_per_node) out.set_max_cpus_per_node(*partition.max_cpus_per_node);
  if (partition.max_cpus_per_socket) out.set_max_cpus_per_socket(*partition.max_cpus_per_socket);
  if (const auto mb = either(partition.def_mem_per_cpu_mb, settings.def_mem_per_cpu_mb)) {
    out.set_def_mem_per_cpu_mb(*mb);
  }
  if (const auto mb = either(partition.def_mem_per_node_mb, settings.def_mem_per_node_mb)) {
    out.set_def_mem_per_node_mb(*mb);
  }
  if (const auto mb = either(partition.max_mem_per_cpu_mb, settings.max_mem_per_cpu_mb)) {
    out.set_max_mem_per_cpu_mb(*mb);
  }
  if (const auto mb = either(partition.max_mem_per_node_mb, settings.max_mem_per_node_mb)) {
    out.set_max_mem_per_node_mb(*mb);
  }
  std::string defaults;
  if (const auto cpus = either(partition.def_cpu_per_gpu, settings.def_cpu_per_gpu)) {
    defaults = fmt::format("DefCpuPerGPU={}", *cpus);
  }
  if (const auto mb = either(partition.def_mem_per_gpu_mb, settings.def_mem_per_gpu_mb)) {
    defaults += fmt::format("{}DefMemPerGPU={}", defaults.empty() ? "" : ",", *mb);
  }
  out.set_job_defaults(defaults);
}

}  // namespace

wire::NodeInfo node_info(const InfoSite& site, const job::State& state, cluster::NodeIndex index) {
  wire::NodeInfo out;
  const cluster::Node& node = site.cluster.nodes[index];
  const job::NodeState& known = state.node(index);
  const cluster::NodeUsage& usage = state.usage().at(index);
  out.set_name(node.name);
  out.set_arch(known.arch);
  out.set_os(known.os);
  out.set_sockets(node.sockets);
  out.set_cores_per_socket(node.cores_per_socket);
  out.set_threads_per_core(node.threads_per_core);
  out.set_cpus(node.cpus());
  const auto reserved = static_cast<std::uint32_t>(node.reserved_cores.count());
  out.set_reserved_cores(reserved);
  out.set_reserved_memory_mb(node.reserved_memory_mb);
  out.set_restricted_cores_per_gpu(node.restricted_cores_per_gpu);
  if (node.gpu_cores.any()) out.set_gpu_cores(node.gpu_cores.ranges());
  out.set_cpus_effective(node.cpus() - reserved * node.threads_per_core);
  out.set_cpus_allocated(static_cast<std::uint32_t>(usage.cores.count()) * node.threads_per_core);
  out.set_load(known.load);
  out.set_features(known.features ? *known.features
                                  : fmt::format("{}", fmt::join(node.features, ",")));
  out.set_gres(gres_words(node));
  out.set_gres_used(gres_used_words(node, usage));
  out.set_gres_drained(gres_drained_words(node));
  for (const auto& [gpu, why] : node.gpus_out) {
    out.add_gpus_out(fmt::format("GPU {}: {}", gpu, why));
  }
  out.set_clock_ahead_seconds(known.clock_ahead);
  out.set_address(known.address.host());
  out.set_host(known.host);
  out.set_port(known.address.port());
  if (known.registered) out.set_version(std::string(kShownVersion));
  out.set_memory_mb(node.memory_mb);
  out.set_memory_allocated_mb(usage.memory_mb);
  if (known.free_memory_mb) out.set_memory_free_mb(*known.free_memory_mb);
  out.set_tmp_disk_mb(node.tmp_disk_mb);
  out.set_weight(known.weight.value_or(node.weight));
  put_state(out, known, node, usage);
  for (const cluster::Partition& partition : site.cluster.partitions) {
    if (std::ranges::binary_search(partition.nodes, index)) out.add_partitions(partition.name);
  }
  out.set_boot_time(known.boot_time);
  out.set_started(known.agent_started);
  out.set_last_busy(known.last_busy);
  if (const auto seconds = state.suspend_seconds(index)) out.set_suspend_seconds(*seconds);
  out.set_reason(known.reason);
  if (!known.reason.empty()) out.set_reason_user(site.users.name_of(known.reason_uid));
  out.set_reason_time(known.reason_time);
  out.set_comment(known.comment);
  out.set_extra(known.extra);
  out.set_reservation(known.reservation);
  out.set_cfg_tres(tres_words(counts_of(node), site.tracked));

  TresCounts taken;
  taken.cpus = out.cpus_allocated();
  taken.memory_mb = usage.memory_mb;
  for (std::size_t i = 0; i < node.gres.size() && i < usage.gres.size(); ++i) {
    for (std::size_t d = 0; d < usage.gres[i].size() && d < node.gres[i].devices.size(); ++d) {
      taken.gres.push_back({node.gres[i].name, node.gres[i].devices[d].type, usage.gres[i][d]});
    }
  }
  out.set_alloc_tres(tres_words(taken, site.tracked));
  return out;
}

wire::PartitionInfo partition_info(const InfoSite& site, const job::State& state,
                                   const cluster::Partition& partition, const Setup& setup) {
  wire::PartitionInfo out;
  out.set_name(partition.name);
  out.set_is_default(partition.is_default);
  out.set_state(std::string(state_word(partition.state)));
  put_limits(out, partition, site.cluster.settings);
  std::vector<std::string> names;
  TresCounts counts;
  counts.billing = true;
  counts.nodes = partition.nodes.size();
  for (const cluster::NodeIndex i : partition.nodes) {
    const cluster::Node& node = site.cluster.nodes[i];
    names.push_back(node.name);
    const TresCounts one = counts_of(node);
    counts.cpus += one.cpus;
    counts.memory_mb += one.memory_mb;
    counts.gres.insert(counts.gres.end(), one.gres.begin(), one.gres.end());
  }
  out.set_nodes(text::compress_hostlist(names));
  out.set_total_nodes(static_cast<std::uint32_t>(names.size()));
  out.set_total_cpus(static_cast<std::uint32_t>(counts.cpus));
  out.set_tres(tres_words(counts, site.tracked));
  out.set_over_subscribe("NO");
  out.set_exclusive(partition.exclusive_nodes ? "NODE" : "NO");
  out.set_least_loaded(partition.least_loaded);
  const auto policy = state.policy().partitions.find(partition.name);
  const bool known = policy != state.policy().partitions.end();
  out.set_priority_tier(known ? policy->second.priority_tier : 1);
  out.set_priority_job_factor(known ? policy->second.priority_job_factor : 1);
  const job::PreemptPolicy& preempt = state.policy().preempt;
  const bool own_mode = known && policy->second.preempt_mode;
  const job::PreemptMode mode = own_mode ? *policy->second.preempt_mode : preempt.mode;
  out.set_preempt_mode(std::string(job::preempt_word(mode)));
  if (known) out.set_grace_seconds(static_cast<std::uint32_t>(policy->second.grace));
  if (known && policy->second.gpu_idle_seconds) {
    out.set_gpu_idle_seconds(*policy->second.gpu_idle_seconds);
  }
  if (known && policy->second.max_gpu_idle_seconds) {
    out.set_max_gpu_idle_seconds(*policy->second.max_gpu_idle_seconds);
  }
  const conf::SlurmConf& conf = setup.config.slurm;
  const auto changed = state.partition_records().find(partition.name);
  const bool as_written = changed == state.partition_records().end();
  put_rules(out, partition_line(setup, partition.name, as_written ? nullptr : &changed->second),
            conf);
  return out;
}

}  // namespace berth::controller
