#include "command/sinfo_json.h"

#include <algorithm>
#include <array>

namespace berth::command {
namespace {

using Group = NodeGroup;
using Node = wire::NodeInfo;

struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
template <class F>
Range range_of(const Group& group, F&& value) {
  Range range;
  for (const Node* node : group.nodes) {
    const auto one = static_cast<std::int64_t>(value(*node));
    range.least = node == group.nodes.front() ? one : std::min(range.least, one);
    range.most = std::max(range.most, one);
  }
  return range;
}

void append_range(JsonText& json, std::string_view key, const Range& range) {
  json.begin_object(key);
  json.number("minimum", range.least);
  json.number("maximum", range.most);
  json.end_object();
}

void append_counts(JsonText& json, const NodeCounts& counts) {
  json.unsigned_number("allocated", counts.allocated);
  json.unsigned_number("idle", counts.idle);
  json.unsigned_number("other", counts.other);
  json.unsigned_number("total", counts.total);
}

void append_cpus(JsonText& json, const Group& group) {
  const Range cpus = range_of(group, [](const Node& n) { return n.cpus(); });
  json.begin_object("cpus");
  append_counts(json, count_cpus(group));
  json.number("minimum", cpus.least);
  json.number("maximum", cpus.most);
  append_range(json, "load", range_of(group, [](const Node& n) { return n.load() * 100; }));
  json.begin_object("per_node");
  const wire::PartitionInfo& p = *group.partition;
  json.number_or_infinite("max", p.has_max_cpus_per_node()
                                     ? std::optional<std::int64_t>(p.max_cpus_per_node())
                                     : std::nullopt);
  json.end_object();
  json.end_object();
}

void append_memory_json(JsonText& json, const Group& group) {
  const Range memory = range_of(group, [](const Node& n) { return n.memory_mb(); });
  const Range free = range_of(group, [](const Node& n) { return n.memory_free_mb(); });
  std::uint64_t taken = 0;
  for (const Node* node : group.nodes) taken += node->memory_allocated_mb();
  json.begin_object("memory");
  json.number("minimum", memory.least);
  json.number("maximum", memory.most);
  json.begin_object("free");
  const bool known =
      std::ranges::any_of(group.nodes, [](const Node* n) { return n->has_memory_free_mb(); });
  json.number_or_unset("minimum", known ? std::optional(free.least) : std::nullopt);
  json.number_or_unset("maximum", known ? std::optional(free.most) : std::nullopt);
  json.end_object();
  json.unsigned_number("allocated", taken);
  json.end_object();
}

void append_group(JsonText& json, const Group& group) {
  const Node none;
  const Node& first = group.nodes.empty() ? none : *group.nodes.front();
  json.begin_object();
  json.number("port", first.port());
  json.begin_object("node");
  json.begin_array("state");
  if (!group.nodes.empty()) json.item(first.state());
  for (const std::string& flag : first.flags()) json.item(flag);
  json.end_array();
  json.end_object();
  json.begin_object("nodes");
  append_counts(json, count_nodes(group));
  json.begin_array("hostnames");
  json.end_array();
  json.begin_array("addresses");
  json.end_array();
  json.begin_array("nodes");
  for (const Node* node : group.nodes) json.item(node->name());
  json.end_array();
  json.end_object();
  append_cpus(json, group);
  append_range(json, "sockets", range_of(group, [](const Node& n) { return n.sockets(); }));
  append_range(json, "cores", range_of(group, [](const Node& n) { return n.cores_per_socket(); }));
  append_range(json, "threads",
               range_of(group, [](const Node& n) { return n.threads_per_core(); }));
  append_range(json, "disk", range_of(group, [](const Node& n) { return n.tmp_disk_mb(); }));
  append_memory_json(json, group);
  append_range(json, "weight", range_of(group, [](const Node& n) { return n.weight(); }));
  json.begin_object("features");
  json.text("total", first.features());
  json.text("active", first.features());
  json.end_object();
  json.begin_object("gres");
  json.text("total", first.gres());
  json.text("used", first.gres_used());
  json.end_object();
  json.text("cluster", "");
  json.text("comment", first.comment());
  json.text("extra", first.extra());
  json.begin_object("reason");
  json.text("description", first.reason());
  json.number("time", first.reason_time());
  json.end_object();
  json.text("reservation", first.reservation());
  json.text("reason_set_by_user", first.reason_user());
  json.begin_object("resource_spec");
  json.text("cpus", "");
  json.unsigned_number("memory", first.reserved_memory_mb());
  json.end_object();
  append_partition_json(json, "partition", *group.partition);
  json.end_object();
}

/// Partition, state, devices and CPUs tell groups apart.
void key_of(const NodeGroup& one, const void* /*context*/, std::string& key) {
  key += one.partition->name();
  if (one.nodes.empty()) return;
  const Node& node = *one.nodes.front();
  key += '\n' + node.state();
  for (const std::string& flag : node.flags()) key += '+' + flag;
  key += '\n' + node.gres() + '\n' + std::to_string(node.cpus());
}

std::optional<std::int64_t> if_set(bool set, std::uint64_t value) {
  return set ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
}

/// Memory limits: by CPU, or by node.
void append_memory_limit(JsonText& json, bool by_cpu, std::uint64_t cpu_mb, std::uint64_t node_mb) {
  json.number_or_unset("partition_memory_per_cpu", if_set(by_cpu, cpu_mb));
  json.number_or_unset("partition_memory_per_node", if_set(!by_cpu, node_mb));
}

}  // namespace

void append_partition_json(JsonText& json, std::string_view key, const wire::PartitionInfo& p) {
  const auto unless_all = [](const std::string& text) { return text == "ALL" ? "" : text; };
  json.begin_object(key);
  json.begin_object("nodes");
  json.text("allowed_allocation", "");
  json.text("configured", p.nodes());
  json.number("total", p.total_nodes());
  json.end_object();
  json.begin_object("accounts");
  json.text("allowed", unless_all(p.allow_accounts()));
  json.text("deny", "");
  json.end_object();
  json.begin_object("groups");
  json.text("allowed", unless_all(p.allow_groups()));
  json.end_object();
  json.begin_object("qos");
  json.text("allowed", unless_all(p.allow_qos()));
  json.text("deny", "");
  json.text("assigned", "");
  json.end_object();
  json.text("alternate", "");
  json.begin_object("tres");
  json.text("billing_weights", "");
  json.text("configured", p.tres());
  json.end_object();
  json.text("cluster", "");
  json.words("select_type", std::array<std::string, 1>{"NONE"});
  json.begin_object("cpus");
  json.begin_array("task_binding");
  json.end_array();
  json.number("total", p.total_cpus());
  json.end_object();
  json.begin_object("defaults");
  append_memory_limit(json, p.has_def_mem_per_cpu_mb(), p.def_mem_per_cpu_mb(),
                      p.def_mem_per_node_mb());
  json.number_or_unset("time", if_set(p.has_default_time_minutes(), p.default_time_minutes()));
  json.text("job", p.job_defaults());
  json.end_object();
  json.begin_array("flags");
  if (p.is_default()) json.item("DEFAULT");
  if (p.hidden()) json.item("HIDDEN");
  if (p.root_only()) json.item("ROOT_ONLY");
  if (p.disable_root()) json.item("NO_ROOT");
  if (p.least_loaded()) json.item("LLN");
  json.end_array();
  json.begin_object("partition");
  json.text("exclusive", p.exclusive().empty() ? "NO" : p.exclusive());
  json.text("oversubscribe", p.over_subscribe().empty() ? "NO" : p.over_subscribe());
  json.words("state", std::array<std::string, 1>{p.state()});
  json.end_object();
  json.number("grace_time", p.grace_seconds());
  json.begin_object("maximums");
  json.number_or_infinite("cpus_per_node",
                          if_set(p.has_max_cpus_per_node(), p.max_cpus_per_node()));
  json.number_or_infinite("cpus_per_socket",
                          if_set(p.has_max_cpus_per_socket(), p.max_cpus_per_socket()));
  append_memory_limit(json, p.has_max_mem_per_cpu_mb(), p.max_mem_per_cpu_mb(),
                      p.max_mem_per_node_mb());
  json.number_or_infinite("nodes", if_set(p.has_max_nodes(), p.max_nodes()));
  json.number_or_infinite("time", if_set(p.has_max_time_minutes(), p.max_time_minutes()));
  json.unset_number("over_time_limit");
  json.end_object();
  json.begin_object("minimums");
  json.number("nodes", p.min_nodes());
  json.end_object();
  json.text("name", p.name());
  json.text("node_sets", p.node_sets());
  json.words("preempt_mode", std::array<std::string, 1>{"CLUSTER_GLOBAL"});
  json.begin_object("priority");
  json.number("job_factor", p.priority_job_factor());
  json.number("tier", p.priority_tier());
  json.end_object();
  json.begin_object("timeouts");
  json.unset_number("resume");
  json.unset_number("suspend");
  json.end_object();
  json.text("topology", "");
  json.unset_number("suspend_time");
  json.end_object();
}

std::string sinfo_json(const SinfoOptions& options, const wire::NodesReply& reply,
                       const JsonMeta& meta) {
  JsonText json;
  json.begin_object();
  json.begin_array("sinfo");
  for (const NodeGroup& group : group_nodes(options, reply, key_of, nullptr)) {
    append_group(json, group);
  }
  json.end_array();
  append_meta(json, meta);
  json.end_object();
  return std::move(json).done();
}

}  // namespace berth::command
