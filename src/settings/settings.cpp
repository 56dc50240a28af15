#include "settings/settings.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "request/directives.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::settings {
namespace {

std::vector<std::string> names_in(const conf::Maybe<std::string>& list) {
  std::vector<std::string> names;
  if (!list || text::equal_ignoring_case(list->value, "ALL")) return names;
  for (const std::string_view name : text::split(list->value, ',')) {
    if (!text::trim(name).empty()) names.emplace_back(text::trim(name));
  }
  return names;
}

/// "matlab:10,ansys": how many there are of each.
std::map<std::string, std::uint64_t> licenses_in(std::string_view text) {
  std::map<std::string, std::uint64_t> out;
  for (const std::string_view item : text::split(text, ',')) {
    const std::string_view word = text::trim(item);
    if (word.empty()) continue;
    const std::size_t colon = word.find_first_of(":*");
    std::uint64_t count = 1;
    if (colon != std::string_view::npos) {
      std::from_chars(word.data() + colon + 1, word.data() + word.size(), count);
    }
    out[std::string(word.substr(0, colon))] += count;
  }
  return out;
}

std::optional<std::uint64_t> number(const conf::Parameters& parameters, std::string_view name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::nullopt;
  std::uint64_t value = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

job::PreemptMode mode_of(std::string_view word) {
  if (text::equal_ignoring_case(word, "CANCEL")) return job::PreemptMode::cancel;
  if (text::equal_ignoring_case(word, "REQUEUE")) return job::PreemptMode::requeue;
  if (text::equal_ignoring_case(word, "SUSPEND")) return job::PreemptMode::suspend;
  return job::PreemptMode::off;
}

/// Older files have preempt_youngest_first and its like in SchedulerParameters.
job::PreemptPolicy preempt_of(const conf::DaemonKeys& keys) {
  const conf::PreemptKeys& preempt = keys.preempt;
  const auto flag = [&](const std::string& name) {
    return preempt.parameters.contains(name) || keys.scheduler.contains("preempt_" + name) ||
           keys.controller.contains("preempt_" + name);
  };
  job::PreemptPolicy out;
  out.by_tier = preempt.type == "preempt/partition_prio";
  out.mode = mode_of(preempt.mode.mode);
  out.lower_priority_only = preempt.mode.priority;
  out.exempt = preempt.exempt_seconds.value_or(0);
  if (const auto priority = number(preempt.parameters, "min_exempt_priority")) {
    out.min_exempt_priority =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(*priority, UINT32_MAX));
  }
  out.youngest_first = flag("youngest_first");
  out.reclaim_licenses = flag("reclaim_licenses");
  out.send_user_signal = flag("send_user_signal");
  if (const auto seconds = number(preempt.parameters, "suspend_grace_time")) {
    out.suspend_grace = static_cast<job::Time>(std::min<std::uint64_t>(*seconds, 3600));
  }
  return out;
}

job::PriorityPolicy priority_of(const conf::PriorityKeys& keys) {
  const auto flag = [&](std::string_view name) {
    return std::ranges::find(keys.flags, name) != keys.flags.end();
  };
  job::PriorityPolicy out;
  out.multifactor = keys.type != "priority/basic";
  out.weight_age = keys.weight_age;
  out.weight_assoc = keys.weight_assoc;
  out.weight_fair_share = keys.weight_fair_share;
  out.weight_size = keys.weight_job_size;
  out.weight_partition = keys.weight_partition;
  out.weight_qos = keys.weight_qos;
  out.weight_tres = keys.weight_tres;
  out.max_age = keys.max_age_seconds;
  out.calc_period = keys.calc_period_seconds;
  out.favor_small = keys.favor_small;
  out.accrue_always = flag("ACCRUE_ALWAYS");
  out.only_up = flag("INCR_ONLY");
  out.raw_partition = flag("NO_NORMAL_PART") || flag("NO_NORMAL_ALL");
  out.raw_tres = flag("NO_NORMAL_TRES") || flag("NO_NORMAL_ALL");
  out.size_over_time = flag("SMALL_RELATIVE_TO_TIME");
  return out;
}

job::PowerPolicy power_of(const conf::SlurmConf& conf) {
  static_assert(conf::kNeverSuspend == job::kNeverSwitchedOff);
  const conf::PowerKeys& keys = conf.daemon.power;
  job::PowerPolicy out;
  out.enabled = keys.enabled();
  out.suspend = keys.suspend_seconds;
  out.suspend_timeout = keys.suspend_timeout_seconds;
  out.resume_timeout = keys.resume_timeout_seconds;
  out.suspend_rate = keys.suspend_rate;
  out.resume_rate = keys.resume_rate;
  for (const conf::KeptOn& one : keys.kept_on) out.kept_on.push_back({one.nodes, one.count});
  out.kept_on_partitions = keys.kept_on_parts;
  out.kept_on_states = keys.kept_on_states;
  for (const conf::NodeLine& line : conf.nodes) {
    if (!line.suspend_seconds) continue;
    for (const std::string& name : line.names) {
      out.suspend_of_node[name] = line.suspend_seconds->value;
    }
  }
  return out;
}

}  // namespace

job::PartitionPolicy partition_policy(const conf::PartitionRules& rules,
                                      const FindMembers& find_members) {
  job::PartitionPolicy policy;
  if (rules.priority_tier) policy.priority_tier = rules.priority_tier->value;
  if (rules.priority_job_factor) policy.priority_job_factor = rules.priority_job_factor->value;
  if (rules.over_time_limit_minutes) {
    policy.over_time_minutes = rules.over_time_limit_minutes->value;
  }
  if (rules.preempt_mode) {
    // Of several words one is a mode, the others are flags of the cluster.
    policy.preempt_mode = job::PreemptMode::off;
    for (const std::string_view word : text::split(rules.preempt_mode->value, ',')) {
      const job::PreemptMode mode = mode_of(text::trim(word));
      if (mode != job::PreemptMode::off) policy.preempt_mode = mode;
    }
  }
  if (rules.grace_seconds) policy.grace = rules.grace_seconds->value;
  if (rules.gpu_idle_seconds && rules.gpu_idle_seconds->value > 0) {
    policy.gpu_idle_seconds = rules.gpu_idle_seconds->value;
  }
  if (rules.max_gpu_idle_seconds && rules.max_gpu_idle_seconds->value > 0) {
    policy.max_gpu_idle_seconds = rules.max_gpu_idle_seconds->value;
  }
  if (rules.root_only) policy.root_only = rules.root_only->value;
  if (rules.disable_root_jobs) policy.disable_root = rules.disable_root_jobs->value;
  policy.allow_accounts = names_in(rules.allow_accounts);
  policy.deny_accounts = names_in(rules.deny_accounts);
  policy.allow_qos = names_in(rules.allow_qos);
  policy.deny_qos = names_in(rules.deny_qos);
  if (rules.require_reservation) policy.require_reservation = rules.require_reservation->value;
  if (rules.alloc_nodes) {
    if (auto hosts = text::expand_hostlist(rules.alloc_nodes->value)) {
      policy.alloc_nodes = std::move(*hosts);
    }
  }
  if (rules.allow_groups && find_members) {
    policy.members = find_members(names_in(rules.allow_groups));
  }
  policy.power = {conf::value_of(rules.suspend_seconds),
                  conf::value_of(rules.suspend_timeout_seconds),
                  conf::value_of(rules.resume_timeout_seconds),
                  rules.power_down_on_idle && rules.power_down_on_idle->value};
  return policy;
}

job::Policy policy_of(const conf::Config& config, const std::string& conf_path, bool emulated,
                      const FindMembers& find_members) {
  const conf::DaemonKeys& keys = config.slurm.daemon;
  job::Policy policy;
  if (config.slurm.cluster_name) policy.cluster_name = config.slurm.cluster_name->value;
  policy.conf_path = conf_path;
  policy.kill_wait = keys.kill_wait_seconds;
  policy.min_job_age = keys.min_job_age_seconds;
  policy.first_job_id = keys.first_job_id;
  policy.max_job_id = keys.max_job_id;
  if (const auto wait = number(keys.scheduler, "max_switch_wait")) {
    policy.max_switch_wait = static_cast<std::uint32_t>(std::min<std::uint64_t>(*wait, UINT32_MAX));
  }
  policy.max_job_count = keys.max_job_count;
  if (const auto size = number(keys.scheduler, "max_script_size")) {
    policy.max_script = std::min<std::uint64_t>(*size, request::kMostScript);
  }
  policy.inactive_limit = keys.inactive_seconds;
  policy.job_requeue = keys.job_requeue;
  policy.requeue_lease = keys.requeue_lease;
  policy.max_batch_requeue = keys.max_batch_requeue;
  policy.slurmd_timeout = keys.node_timeout_seconds;
  policy.return_to_service = keys.return_to_service;
  policy.reservation_overrun_minutes = keys.reservation_overrun_minutes;
  policy.over_time_minutes =
      keys.over_time_limit_minutes.value_or(std::numeric_limits<std::uint32_t>::max());
  policy.complete_wait = keys.complete_wait_seconds;
  policy.max_step_count = keys.max_step_count;
  policy.requeue_exit = keys.requeue_exit;
  policy.requeue_exit_hold = keys.requeue_exit_hold;
  policy.config_overrides = keys.config_overrides();
  policy.kill_invalid_depend = keys.dependency.contains("kill_invalid_depend") ||
                               keys.scheduler.contains("kill_invalid_depend");
  policy.job_file_append = keys.job_file_append;
  policy.emulated = emulated;
  if (keys.step_ports) policy.ports = {keys.step_ports->first, keys.step_ports->last};
  policy.licenses = licenses_in(keys.licenses);
  policy.priority = priority_of(keys.priority);
  policy.preempt = preempt_of(keys);
  policy.power = power_of(config.slurm);
  policy.user_top = keys.controller.contains("enable_user_top");
  for (const conf::PartitionLine& line : config.slurm.partitions) {
    policy.partitions[line.name] = partition_policy(line.rules, find_members);
    if (keys.disable_root_jobs && !line.rules.disable_root_jobs) {
      policy.partitions[line.name].disable_root = true;
    }
  }
  return policy;
}

schedule::Options schedule_of(const conf::DaemonKeys& keys) {
  schedule::Options options;
  options.backfill = keys.scheduler_type != "sched/builtin";
  const auto take = [&](std::string_view name, auto& out, std::uint64_t least, std::uint64_t most) {
    if (const auto value = number(keys.scheduler, name); value && *value >= least) {
      out = static_cast<std::remove_reference_t<decltype(out)>>(std::min(*value, most));
    }
  };
  take("bf_window", options.backfill_window_minutes, 1, 60ULL * 24 * 365);
  take("bf_max_job_test", options.planned, 1, 1000000);
  take("bf_interval", options.plan_interval, 1, 10800);
  take("bf_min_age_reserve", options.min_age_to_plan, 0, 2592000);
  take("bf_min_prio_reserve", options.min_priority_to_plan, 0, UINT32_MAX);
  take("bf_job_part_count_reserve", options.planned_in_partition, 0, 100000);
  return options;
}

}  // namespace berth::settings
