#include "command/sinfo_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "command/show_states.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::command {
namespace {

using Out = std::string;
using Group = NodeGroup;
using Node = wire::NodeInfo;

bool usable(const Node& node) {
  return (node.state() == "IDLE" || node.state() == "MIXED" || node.state() == "ALLOCATED") &&
         !has_flag(node, "DRAIN") && !has_flag(node, "FAIL") && !has_flag(node, "INVALID_REG");
}

void append_four(Out& out, const NodeCounts& counts) {
  append_unsigned(out, counts.allocated);
  out += '/';
  append_unsigned(out, counts.idle);
  out += '/';
  append_unsigned(out, counts.other);
  out += '/';
  append_unsigned(out, counts.total);
}

/// The least value, with "+" when nodes differ.
template <class F>
void append_least(Out& out, const Group& group, F&& value) {
  if (group.nodes.empty()) {
    out += '0';
    return;
  }
  std::uint64_t least = value(*group.nodes.front());
  std::uint64_t most = least;
  for (const Node* node : group.nodes) {
    least = std::min<std::uint64_t>(least, value(*node));
    most = std::max<std::uint64_t>(most, value(*node));
  }
  append_unsigned(out, least);
  if (least != most) out += '+';
}

/// "8.37-11.49", "21549", "N/A".
template <class F, class Show>
void append_range(Out& out, const Group& group, F&& value, Show&& show) {
  using Value = typename std::invoke_result_t<F, const Node&>::value_type;
  std::optional<Value> least;
  std::optional<Value> most;
  for (const Node* node : group.nodes) {
    const std::optional<Value> one = value(*node);
    if (!one) continue;
    least = least ? std::min(*least, *one) : *one;
    most = most ? std::max(*most, *one) : *one;
  }
  if (!least) {
    out += "N/A";
    return;
  }
  show(out, *least);
  if (*least != *most) {
    out += '-';
    show(out, *most);
  }
}

/// What the nodes of a group have in common: of the first.
void append_of_first(Out& out, const Group& group, std::string_view missing,
                     const std::string& (*value)(const Node&)) {
  append_or(out, group.nodes.empty() ? std::string_view() : value(*group.nodes.front()), missing);
}

template <class F>
void append_names(Out& out, const Group& group, F&& name) {
  std::vector<std::string> names;
  for (const Node* node : group.nodes) names.push_back(name(*node));
  out += text::compress_hostlist(names);
}

void append_partition(Out& out, const Group& group, bool star) {
  if (group.partition == nullptr) return;
  out += group.partition->name();
  if (star && group.partition->is_default()) out += '*';
}

void append_available(Out& out, const Group& group) {
  if (group.partition == nullptr) return;
  const std::string& state = group.partition->state();
  out += state == "INACTIVE" ? "inact" : text::to_lower(state);
}

void append_job_size(Out& out, const Group& group) {
  if (group.partition == nullptr) return;
  const std::uint32_t least = std::max(1U, group.partition->min_nodes());
  append_unsigned(out, least);
  if (!group.partition->has_max_nodes()) {
    out += "-infinite";
  } else if (group.partition->max_nodes() != least) {
    out += '-';
    append_unsigned(out, group.partition->max_nodes());
  }
}

void append_minutes(Out& out, bool set, std::uint32_t minutes, std::string_view missing) {
  if (set) {
    append_run_time(out, std::int64_t{minutes} * 60);
  } else {
    out += missing;
  }
}

void append_state(Out& out, const Group& group, bool compact) {
  if (group.nodes.empty()) {
    out += "n/a";
  } else {
    append_node_state(out, *group.nodes.front(), compact);
  }
}

void append_groups(Out& out, const Group& group) {
  if (group.partition == nullptr) return;
  const std::string& groups = group.partition->allow_groups();
  append_or(out, groups == "ALL" ? std::string_view() : std::string_view(groups), "all");
}

void append_load(Out& out, double load) {
  fmt::format_to(std::back_inserter(out), "{:.2f}", load);
}

#define SHOW(...)                                                                      \
  []([[maybe_unused]] const Group& g, [[maybe_unused]] const Shown& shown, Out& out) { \
    __VA_ARGS__;                                                                       \
  }
#define LEAST(expression) \
  SHOW(append_least(out, g, [](const Node& n) -> std::uint64_t { return expression; }))
#define LEAST_BY(expression)                                \
  [](const Group& g) -> std::int64_t {                      \
    std::uint64_t least = g.nodes.empty() ? 0 : UINT64_MAX; \
    for (const Node* node : g.nodes) {                      \
      const Node& n = *node;                                \
      least = std::min<std::uint64_t>(least, expression);   \
    }                                                       \
    return static_cast<std::int64_t>(least);                \
  }
#define FIRST(field, missing)           \
  SHOW(append_of_first(out, g, missing, \
                       [](const Node& n) -> const std::string& { return n.field(); }))
#define OF_PARTITION(expression) SHOW(if (g.partition != nullptr) { expression; })

constexpr auto kPartition = SHOW(append_partition(out, g, true));
constexpr auto kState = SHOW(append_state(out, g, true));
constexpr auto kLongState = SHOW(append_state(out, g, false));
constexpr auto kNodes = SHOW(out += node_names(g));
constexpr auto kByState = [](const Group& g) -> std::int64_t {
  return g.nodes.empty() ? -1 : node_state_number(*g.nodes.front());
};
constexpr auto kByNode = [](const Group& g) -> std::int64_t { return g.first_node; };
constexpr auto kByCount = [](const Group& g) -> std::int64_t {
  return static_cast<std::int64_t>(g.nodes.size());
};

struct SinfoRow {
  Field<NodeGroup> field;
  Grouping grouping = Grouping::same;
};

const SinfoRow kSinfoRows[] = {
    {{'a', "Available", "AVAIL", SHOW(append_available(out, g))}},
    {{'A', "NodeAI", "NODES(A/I)",
      SHOW(const NodeCounts c = count_nodes(g); append_unsigned(out, c.allocated); out += '/';
           append_unsigned(out, c.idle))},
     Grouping::free},
    {{'b', "features_act", "ACTIVE_FEATURES", FIRST(features, "(null)")}},
    {{'B', "MaxCPUsPerNode", "MAX_CPUS_PER_NODE",
      OF_PARTITION(if (g.partition->has_max_cpus_per_node())
                       append_unsigned(out, g.partition->max_cpus_per_node());
                   else out += "UNLIMITED")}},
    {{'c', "CPUs", "CPUS", LEAST(n.cpus()), LEAST_BY(n.cpus())}, Grouping::exact},
    {{'C', "CPUsState", "CPUS(A/I/O/T)", SHOW(append_four(out, count_cpus(g)))}, Grouping::free},
    {{'d', "Disk", "TMP_DISK", LEAST(n.tmp_disk_mb()), LEAST_BY(n.tmp_disk_mb())}, Grouping::exact},
    {{'D', "Nodes", "NODES", SHOW(append_unsigned(out, g.nodes.size())), kByCount}, Grouping::free},
    {{'e', "FreeMem", "FREE_MEM",
      SHOW(append_range(
          out, g,
          [](const Node& n) {
            return n.has_memory_free_mb() ? std::optional(n.memory_free_mb()) : std::nullopt;
          },
          [](Out& to, std::uint64_t mb) { append_unsigned(to, mb); }))},
     Grouping::free},
    {{'E', "Reason", "REASON", FIRST(reason, "none")}},
    {{'f', "Features", "AVAIL_FEATURES", FIRST(features, "(null)")}},
    {{'F', "NodeAIOT", "NODES(A/I/O/T)", SHOW(append_four(out, count_nodes(g)))}, Grouping::free},
    {{'g', "Groups", "GROUPS", SHOW(append_groups(out, g))}},
    {{'G', "Gres", "GRES", FIRST(gres, "(null)")}},
    {{'h', "OverSubscribe", "OVERSUBSCRIBE",
      OF_PARTITION(append_or(out, g.partition->over_subscribe(), "NO"))}},
    {{'H', "TimeStamp", "TIMESTAMP",
      SHOW(append_time(out, g.nodes.empty() ? 0 : g.nodes.front()->reason_time(), shown,
                       "Unknown"))}},
    {{'i', "Reservation", "RESERVATION", FIRST(reservation, "")}},
    {{'I', "PriorityJobFactor", "PRIO_JOB_FACTOR",
      OF_PARTITION(append_unsigned(out, g.partition->priority_job_factor()))}},
    {{'l', "Time", "TIMELIMIT",
      OF_PARTITION(append_minutes(out, g.partition->has_max_time_minutes(),
                                  g.partition->max_time_minutes(), "infinite"))}},
    {{'L', "DefaultTime", "DEFAULTTIME",
      OF_PARTITION(append_minutes(out, g.partition->has_default_time_minutes(),
                                  g.partition->default_time_minutes(), "n/a"))}},
    {{'m', "Memory", "MEMORY", LEAST(n.memory_mb()), LEAST_BY(n.memory_mb())}, Grouping::exact},
    {{'M', "PreemptMode", "PREEMPT_MODE",
      OF_PARTITION(append_or(out, g.partition->preempt_mode(), "OFF"))}},
    {{'n', "NodeHost", "HOSTNAMES",
      SHOW(append_names(out, g,
                        [](const Node& n) { return n.host().empty() ? n.name() : n.host(); })),
      kByNode}},
    {{'N', "NodeList", "NODELIST", kNodes, kByNode}, Grouping::free},
    {{'o', "NodeAddr", "NODE_ADDR",
      SHOW(append_names(
          out, g, [](const Node& n) { return n.address().empty() ? n.name() : n.address(); })),
      kByNode}},
    {{'O', "CPUsLoad", "CPU_LOAD",
      SHOW(append_range(
          out, g, [](const Node& n) { return std::optional(n.load()); }, append_load))},
     Grouping::free},
    {{'p', "PriorityTier", "PRIO_TIER",
      OF_PARTITION(append_unsigned(out, g.partition->priority_tier()))}},
    {{'P', "Partition", "PARTITION", kPartition}},
    {{'r', "Root", "ROOT", OF_PARTITION(out += g.partition->root_only() ? "yes" : "no")}},
    {{'R', "PartitionName", "PARTITION", SHOW(append_partition(out, g, false))}},
    {{'s', "Size", "JOB_SIZE", SHOW(append_job_size(out, g))}},
    {{'S', "AllocNodes", "ALLOCNODES", SHOW(out += "all")}},
    {{'t', "StateCompact", "STATE", kState, kByState}},
    {{'T', "StateLong", "STATE", kLongState, kByState}},
    {{'u', "User", "USER", FIRST(reason_user, "Unknown")}},
    {{'U', "UserLong", "USER", FIRST(reason_user, "Unknown")}},
    {{'v', "Version", "VERSION", FIRST(version, "N/A")}},
    {{'V', "Cluster", "CLUSTER", SHOW(out += "N/A")}},
    {{'w', "Weight", "WEIGHT", LEAST(n.weight()), LEAST_BY(n.weight())}, Grouping::exact},
    {{'X', "Sockets", "SOCKETS", LEAST(n.sockets()), LEAST_BY(n.sockets())}, Grouping::exact},
    {{'Y', "Cores", "CORES", LEAST(n.cores_per_socket()), LEAST_BY(n.cores_per_socket())},
     Grouping::exact},
    {{'z', "SocketCoreThread", "S:C:T",
      SHOW(append_least(out, g, [](const Node& n) { return n.sockets(); }); out += ':';
           append_least(out, g, [](const Node& n) { return n.cores_per_socket(); }); out += ':';
           append_least(out, g, [](const Node& n) { return n.threads_per_core(); }))},
     Grouping::exact},
    {{'Z', "Threads", "THREADS", LEAST(n.threads_per_core()), LEAST_BY(n.threads_per_core())},
     Grouping::exact},
    {{0, "AllocMem", "ALLOCMEM", LEAST(n.memory_allocated_mb())}, Grouping::exact},
    {{0, "Comment", "COMMENT", FIRST(comment, "(null)")}},
    {{0, "Extra", "EXTRA", FIRST(extra, "(null)")}},
    {{0, "GresUsed", "GRES_USED", FIRST(gres_used, "(null)")}},
    {{0, "Port", "PORT", LEAST(n.port())}},
    {{0, "StateComplete", "STATECOMPLETE",
      SHOW(if (g.nodes.empty()) out += "n/a";
           else append_whole_node_state(out, *g.nodes.front()))}},
    {{0, "TmpDisk", "TMP_DISK", LEAST(n.tmp_disk_mb())}, Grouping::exact},
};

#undef SHOW
#undef LEAST
#undef LEAST_BY
#undef FIRST
#undef OF_PARTITION

const std::vector<Field<NodeGroup>>& fields() {
  static const std::vector<Field<NodeGroup>> made = [] {
    std::vector<Field<NodeGroup>> out;
    for (const SinfoRow& row : kSinfoRows) out.push_back(row.field);
    return out;
  }();
  return made;
}

}  // namespace

std::span<const Field<NodeGroup>> node_fields() {
  return fields();
}

Grouping grouping_of(std::size_t field) {
  return kSinfoRows[field].grouping;
}

NodeCounts count_nodes(const NodeGroup& group) {
  NodeCounts counts;
  for (const Node* node : group.nodes) {
    ++counts.total;
    if (node->state() == "ALLOCATED" || node->state() == "MIXED" || has_flag(*node, "COMPLETING")) {
      ++counts.allocated;
    } else if (usable(*node)) {
      ++counts.idle;
    } else {
      ++counts.other;
    }
  }
  return counts;
}

NodeCounts count_cpus(const NodeGroup& group) {
  NodeCounts counts;
  for (const Node* node : group.nodes) {
    const std::uint64_t taken = std::min(node->cpus(), node->cpus_allocated());
    counts.total += node->cpus();
    counts.allocated += taken;
    (usable(*node) ? counts.idle : counts.other) += node->cpus() - taken;
  }
  return counts;
}

std::string node_names(const NodeGroup& group) {
  std::vector<std::string> names;
  names.reserve(group.nodes.size());
  for (const Node* node : group.nodes) names.push_back(node->name());
  return text::compress_hostlist(names);
}

}  // namespace berth::command
