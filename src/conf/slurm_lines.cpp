// What the keys of NodeName= and PartitionName= lines mean.
#include "conf/slurm_lines.h"

#include <fmt/format.h>

#include <array>

#include "conf/keys.h"
#include "conf/values.h"
#include "text/cpumask.h"
#include "text/duration.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::conf {
namespace {

constexpr std::uint32_t kMaxCpus = 16384;  // of one node

constexpr std::array<std::string_view, 7> kNodeStates = {"UNKNOWN", "CLOUD",   "DOWN",  "DRAIN",
                                                         "FAIL",    "FAILING", "FUTURE"};

bool no_limit(const Pair& pair) {
  return text::equal_ignoring_case(pair.value, "UNLIMITED") ||
         text::equal_ignoring_case(pair.value, "INFINITE") || pair.value == "-1";
}

void node_gres(const Pair& pair, NodeLine& line, Complaints& complaints) {
  Located<std::vector<text::TresItem>> out{{}, pair.at};
  if (!pair.value.empty() && !text::equal_ignoring_case(pair.value, "none") &&
      pair.value != "(null)") {
    auto items = text::parse_node_gres(pair.value);
    if (!items) {
      complaints.error(pair.at, fmt::format("Gres={}: {}", shown(pair.value), items.error().hint));
      return;
    }
    for (const text::TresItem& a : *items) {
      for (const text::TresItem& b : *items) {
        if (a.name == b.name && a.type.empty() && !b.type.empty()) {
          complaints.error(pair.at,
                           fmt::format("Gres={}: {} is given with and without a type; give a type "
                                       "to all or to none",
                                       shown(pair.value), a.name));
          return;
        }
      }
    }
    out.value = std::move(*items);
  }
  line.gres = std::move(out);
}

void cpu_spec_list(const Pair& pair, NodeLine& line, Complaints& complaints) {
  if (const auto ids = text::parse_id_set(pair.value)) {
    line.cpu_spec_list = Located<Bits>{*ids, pair.at};
  } else {
    complaints.error(
        pair.at, fmt::format("CpuSpecList={}: allowed is a list like 0,8-9", shown(pair.value)));
  }
}

bool node_count_pair(const Pair& pair, NodeLine& line, Complaints& complaints) {
  struct Row {
    std::string_view key;
    Maybe<std::uint32_t> NodeLine::* field;
    std::uint32_t min;
    std::uint32_t max;
  };
  static constexpr std::array<Row, 10> kRows = {{
      {"CPUs", &NodeLine::cpus, 1, kMaxCpus},
      {"Procs", &NodeLine::cpus, 1, kMaxCpus},
      {"Boards", &NodeLine::boards, 1, 64},
      {"Sockets", &NodeLine::sockets, 1, 1024},
      {"SocketsPerBoard", &NodeLine::sockets_per_board, 1, 1024},
      {"CoresPerSocket", &NodeLine::cores_per_socket, 1, kMaxCpus},
      {"ThreadsPerCore", &NodeLine::threads_per_core, 1, 64},
      {"Weight", &NodeLine::weight, 0, UINT32_MAX - 2},
      {"CoreSpecCount", &NodeLine::core_spec_count, 0, kMaxCpus},
      {"RestrictedCoresPerGPU", &NodeLine::restricted_cores_per_gpu, 0, kMaxCpus},
  }};
  for (const Row& row : kRows) {
    if (!is(pair, row.key)) continue;
    put(line.*row.field, number(pair, row.min, row.max, complaints));
    return true;
  }
  return false;
}

void over_subscribe(const Pair& pair, PartitionLine& line, Complaints& complaints) {
  constexpr std::array<std::string_view, 4> kAllowed = {"NO", "YES", "FORCE", "EXCLUSIVE"};
  Pair word = pair;
  word.value = pair.value.substr(0, pair.value.find(':'));
  put(line.over_subscribe, one_of(word, kAllowed, complaints));
  if (line.over_subscribe &&
      (line.over_subscribe->value == "YES" || line.over_subscribe->value == "FORCE")) {
    complaints.warn_once(
        pair.at, "OverSubscribe",
        fmt::format("OverSubscribe={} is not planned for: cores are planned as not "
                    "shared between jobs",
                    shown(pair.value)));
  }
}

void exclusive(const Pair& pair, PartitionLine& line, Complaints& complaints) {
  constexpr std::array<std::string_view, 4> kAllowed = {"NO", "NODE", "USER", "TOPO"};
  put(line.exclusive, one_of(pair, kAllowed, complaints));
  if (line.exclusive && (line.exclusive->value == "USER" || line.exclusive->value == "TOPO")) {
    complaints.warn_once(
        pair.at, "Exclusive",
        fmt::format("Exclusive={} is not planned for: nodes are planned as open to "
                    "all jobs",
                    line.exclusive->value));
  }
}

/// A host list, one for each name or one for all: how many is checked when the names are known.
void node_names(const Pair& pair, Maybe<std::vector<std::string>>& field, Complaints& complaints) {
  auto names = text::expand_hostlist(pair.value);
  if (!names) {
    complaints.error(pair.at, names.error().what());
  } else if (!names->empty()) {
    field = Located<std::vector<std::string>>{std::move(*names), pair.at};
  }
}

/// "7001" or "[7001-7008]".
void node_ports(const Pair& pair, NodeLine& line, Complaints& complaints) {
  Located<std::vector<std::uint32_t>> out{{}, pair.at};
  const auto words = text::expand_hostlist(pair.value);
  for (const std::string& word : words ? *words : std::vector<std::string>{pair.value}) {
    const auto port = number({pair.key, word, pair.at}, 1, 65535, complaints);
    if (!port) return;
    out.value.push_back(port->value);
  }
  if (!out.value.empty()) line.ports = std::move(out);
}

bool node_address_pair(const Pair& pair, NodeLine& line, Complaints& complaints) {
  if (is(pair, "NodeHostname")) {
    node_names(pair, line.hostnames, complaints);
  } else if (is(pair, "NodeAddr")) {
    node_names(pair, line.addresses, complaints);
  } else if (is(pair, "Port")) {
    node_ports(pair, line, complaints);
  } else {
    return false;
  }
  return true;
}

/// 0 = no limit.
std::optional<Located<std::uint32_t>> idle_seconds(const Pair& pair, Complaints& complaints) {
  const auto limit = text::parse_limit_in_seconds(pair.value);
  if (limit) return Located<std::uint32_t>{limit->value_or(0), pair.at};
  complaints.error(pair.at, fmt::format("{}={}: allowed are minutes, hours:minutes:seconds, "
                                        "days-hours, 90s, 30m, 2h, 0 and UNLIMITED",
                                        pair.key, shown(pair.value)));
  return std::nullopt;
}

bool partition_rule_pair(const Pair& pair, PartitionRules& rules, Complaints& complaints) {
  struct TextRow {
    std::string_view key;
    Maybe<std::string> PartitionRules::* field;
  };
  using R = PartitionRules;
  static constexpr auto kTexts = std::to_array<TextRow>({
      {"AllowGroups", &R::allow_groups},
      {"AllowAccounts", &R::allow_accounts},
      {"DenyAccounts", &R::deny_accounts},
      {"AllowQos", &R::allow_qos},
      {"DenyQos", &R::deny_qos},
      {"AllocNodes", &R::alloc_nodes},
      {"QOS", &R::qos},
      {"Alternate", &R::alternate},
      {"TRESBillingWeights", &R::billing_weights},
  });
  for (const TextRow& row : kTexts) {
    if (!is(pair, row.key)) continue;
    const bool all = text::equal_ignoring_case(pair.value, "ALL") || pair.value == "(null)";
    (rules.*row.field).reset();
    if (!all) rules.*row.field = Located<std::string>{pair.value, pair.at};
    return true;
  }
  if (is(pair, "PreemptMode") && preempt_mode(pair, complaints)) {
    rules.preempt_mode = Located<std::string>{pair.value, pair.at};
  }
  constexpr std::uint32_t kMaxPriority = 65533;
  if (is(pair, "PriorityTier") || is(pair, "Priority")) {
    put(rules.priority_tier, number(pair, 0, kMaxPriority, complaints));
  }
  if (is(pair, "PriorityJobFactor") || is(pair, "Priority")) {
    put(rules.priority_job_factor, number(pair, 0, kMaxPriority, complaints));
  }
  if (is(pair, "Hidden")) put(rules.hidden, boolean(pair, complaints));
  if (is(pair, "RootOnly")) put(rules.root_only, boolean(pair, complaints));
  if (is(pair, "DisableRootJobs")) put(rules.disable_root_jobs, boolean(pair, complaints));
  if (is(pair, "ReqResv")) put(rules.require_reservation, boolean(pair, complaints));
  if (is(pair, "GraceTime")) put(rules.grace_seconds, number(pair, 0, UINT32_MAX - 2, complaints));
  if (is(pair, "SuspendTime")) put(rules.suspend_seconds, suspend_seconds(pair, complaints));
  if (is(pair, "SuspendTimeout")) {
    put(rules.suspend_timeout_seconds, number(pair, 0, kMaxPriority, complaints));
  }
  if (is(pair, "ResumeTimeout")) {
    put(rules.resume_timeout_seconds, number(pair, 0, kMaxPriority, complaints));
  }
  if (is(pair, "GpuIdleTimeout")) put(rules.gpu_idle_seconds, idle_seconds(pair, complaints));
  if (is(pair, "MaxGpuIdleTimeout"))
    put(rules.max_gpu_idle_seconds, idle_seconds(pair, complaints));
  if (is(pair, "PowerDownOnIdle")) put(rules.power_down_on_idle, boolean(pair, complaints));
  if (is(pair, "OverTimeLimit")) {
    if (no_limit(pair)) {
      rules.over_time_limit_minutes = Located<std::uint32_t>{UINT32_MAX, pair.at};
    } else {
      put(rules.over_time_limit_minutes, number(pair, 0, kMaxPriority, complaints));
    }
  }
  return false;
}

/// JobDefaults=DefCpuPerGPU=4,DefMemPerGPU=1000
void job_defaults(const Pair& pair, JobLimits& limits, Complaints& complaints) {
  for (const std::string& item : word_list(pair).value) {
    const std::size_t equals = item.find('=');
    Pair inner{item.substr(0, equals), equals == std::string::npos ? "" : item.substr(equals + 1),
               pair.at};
    if (!is(inner, "DefCpuPerGPU") && !is(inner, "DefMemPerGPU")) {
      complaints.error(pair.at, fmt::format("JobDefaults={}: allowed are DefCpuPerGPU= and "
                                            "DefMemPerGPU=",
                                            shown(pair.value)));
      return;
    }
    apply_limit_pair(inner, limits, complaints);
  }
}

}  // namespace

void apply_node_pair(const Pair& pair, NodeLine& line, Complaints& complaints) {
  if (used_key(node_keys(), pair, "a NodeName line", complaints) == nullptr) return;
  if (node_count_pair(pair, line, complaints)) return;
  if (node_address_pair(pair, line, complaints)) return;
  if (is(pair, "RealMemory")) put(line.real_memory_mb, megabytes(pair, complaints));
  if (is(pair, "TmpDisk")) put(line.tmp_disk_mb, megabytes(pair, complaints));
  if (is(pair, "MemSpecLimit")) put(line.mem_spec_limit_mb, megabytes(pair, complaints));
  if (is(pair, "Gres")) node_gres(pair, line, complaints);
  if (is(pair, "Feature") || is(pair, "Features")) line.features = word_list(pair);
  if (is(pair, "State")) put(line.state, one_of(pair, kNodeStates, complaints));
  if (is(pair, "Reason")) line.reason = Located<std::string>{pair.value, pair.at};
  if (is(pair, "CpuSpecList")) cpu_spec_list(pair, line, complaints);
  if (is(pair, "SuspendTime")) put(line.suspend_seconds, suspend_seconds(pair, complaints));
}

bool apply_limit_pair(const Pair& pair, JobLimits& limits, Complaints& complaints) {
  struct Row {
    std::string_view key;
    Maybe<std::uint64_t> JobLimits::* field;
  };
  static constexpr std::array<Row, 5> kRows = {{
      {"DefMemPerCPU", &JobLimits::def_mem_per_cpu_mb},
      {"DefMemPerGPU", &JobLimits::def_mem_per_gpu_mb},
      {"DefMemPerNode", &JobLimits::def_mem_per_node_mb},
      {"MaxMemPerCPU", &JobLimits::max_mem_per_cpu_mb},
      {"MaxMemPerNode", &JobLimits::max_mem_per_node_mb},
  }};
  for (const Row& row : kRows) {
    if (!is(pair, row.key)) continue;
    limits.*row.field = memory_limit(pair, complaints);
    return true;
  }
  if (is(pair, "DefCpuPerGPU")) {
    put(limits.def_cpu_per_gpu, number(pair, 0, kMaxCpus, complaints));
    if (limits.def_cpu_per_gpu && limits.def_cpu_per_gpu->value == 0)
      limits.def_cpu_per_gpu.reset();
    return true;
  }
  if (is(pair, "JobDefaults")) {
    job_defaults(pair, limits, complaints);
    return true;
  }
  return false;
}

void apply_partition_pair(const Pair& pair, PartitionLine& line, Complaints& complaints) {
  constexpr std::array<std::string_view, 4> kStates = {"UP", "DOWN", "DRAIN", "INACTIVE"};
  constexpr std::uint32_t kLargest = UINT32_MAX - 2;
  if (used_key(partition_keys(), pair, "a PartitionName line", complaints) == nullptr) return;
  if (apply_limit_pair(pair, line.limits, complaints)) return;
  if (partition_rule_pair(pair, line.rules, complaints)) return;
  if (is(pair, "Nodes")) line.nodes = Located<std::string>{pair.value, pair.at};
  if (is(pair, "Default")) put(line.is_default, boolean(pair, complaints));
  if (is(pair, "State")) put(line.state, one_of(pair, kStates, complaints));
  if (is(pair, "MaxTime")) put(line.max_time, time_limit(pair, complaints));
  if (is(pair, "DefaultTime")) {
    if (text::equal_ignoring_case(pair.value, "NONE")) {
      line.default_time.reset();
    } else {
      put(line.default_time, time_limit(pair, complaints));
    }
  }
  if (is(pair, "MinNodes")) put(line.min_nodes, number(pair, 0, kLargest, complaints));
  if (is(pair, "MaxNodes") || is(pair, "MaxCPUsPerNode") || is(pair, "MaxCPUsPerSocket")) {
    Maybe<std::uint32_t>& field = is(pair, "MaxNodes")         ? line.max_nodes
                                  : is(pair, "MaxCPUsPerNode") ? line.max_cpus_per_node
                                                               : line.max_cpus_per_socket;
    if (no_limit(pair)) {
      field.reset();
    } else {
      put(field, number(pair, 0, kLargest, complaints));
    }
  }
  if (is(pair, "OverSubscribe") || is(pair, "Shared")) over_subscribe(pair, line, complaints);
  if (is(pair, "Exclusive")) exclusive(pair, line, complaints);
  if (is(pair, "LLN")) put(line.least_loaded, boolean(pair, complaints));
}

void warn_of_repeats(std::span<const Pair> pairs, Complaints& complaints) {
  std::map<std::string, const Pair*> seen;
  for (const Pair& pair : pairs) {
    const auto [at, fresh] = seen.emplace(text::to_lower(pair.key), &pair);
    if (!fresh) {
      complaints.warn(pair.at,
                      fmt::format("{} is given twice on this line; the last one, {}, counts",
                                  shown(pair.key), shown(pair.value)));
    }
  }
}

}  // namespace berth::conf
