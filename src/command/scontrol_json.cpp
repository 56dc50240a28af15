// scontrol show --json: the shapes of Slurm's data_parser v0.0.46.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "command/json_text.h"
#include "command/scontrol_licenses.h"
#include "command/scontrol_reservation.h"
#include "command/scontrol_session.h"
#include "command/scontrol_topology.h"
#include "command/squeue_json.h"
#include "text/hostlist.h"
#include "wire/job_names.h"

namespace berth::command::scontrol {
namespace {

using Value = std::optional<std::string>;

void finish(Session& session, JsonText& json, std::string_view cluster) {
  append_meta(json, json_meta("scontrol", session.argv, session.environment, cluster));
  json.end_object();
  session.out += std::move(json).done();
}

int jobs(Session& session, const Value& value) {
  wire::ListJobs ask;
  ask.set_with_ended(true);
  ask.set_with_detail(true);
  const std::string list = value.value_or("");
  for (const std::string_view word : wire::split_job_list(list)) {
    const auto name = wire::parse_job_name(word);
    if (!name) return session.complain(fmt::format("Invalid job id specified: {}", word));
    *ask.add_ids() = *name;
  }
  const Result<wire::JobsReply> reply = session.ask<wire::JobsReply>(ask);
  if (!reply) return session.complain("slurm_load_jobs error", reply.error());
  if (value && reply->jobs().empty()) {
    return session.complain("slurm_load_jobs error: Invalid job id specified");
  }
  const Result<wire::NodesReply> nodes = session.ask<wire::NodesReply>(wire::ListNodes{});
  if (!nodes) return session.complain("slurm_load_node error", nodes.error());
  NodesByName by_name;
  for (const wire::NodeInfo& node : nodes->nodes()) by_name.emplace(node.name(), &node);
  JsonText json;
  json.begin_object();
  json.begin_array("jobs");
  for (const wire::JobInfo& job : reply->jobs()) {
    append_job_json(json, job, by_name, reply->cluster_name());
  }
  json.end_array();
  json.set_number("last_backfill", reply->last_backfill());
  json.set_number("last_update", reply->now());
  finish(session, json, reply->cluster_name());
  return 0;
}

void append_node(JsonText& json, const wire::NodeInfo& node) {
  json.begin_object();
  json.text("architecture", node.arch());
  json.text("burstbuffer_network_address", "");
  json.number("boards", 1);
  json.set_number("boot_time", node.boot_time());
  json.text("cluster_name", "");
  json.number("cores", node.cores_per_socket());
  json.number("specialized_cores", node.reserved_cores());
  json.number("cpu_binding", 0);
  json.number("cpu_load", std::lround(node.load() * 100));
  json.number_or_unset("free_mem", node.has_memory_free_mb()
                                       ? std::optional<std::int64_t>(node.memory_free_mb())
                                       : std::nullopt);
  json.number("cpus", node.cpus());
  json.number("effective_cpus", node.cpus_effective());
  json.text("specialized_cpus", "");
  for (const char* key : {"features", "active_features"}) json.words(key, list_of(node.features()));
  json.text("gres", node.gres());
  json.text("gres_drained", node.gres_drained().empty() ? "N/A" : node.gres_drained());
  json.text("gres_used", node.gres_used());
  json.number("clock_ahead", node.clock_ahead_seconds());
  json.text("instance_id", "");
  json.text("instance_type", "");
  json.set_number("last_busy", node.last_busy());
  json.text("mcs_label", "");
  json.number("specialized_memory", static_cast<std::int64_t>(node.reserved_memory_mb()));
  json.text("name", node.name());
  json.words("next_state_after_reboot", {});
  json.text("address", node.address());
  json.text("hostname", node.host());
  std::vector<std::string> states{node.state()};
  states.insert(states.end(), node.flags().begin(), node.flags().end());
  json.words("state", states);
  json.text("operating_system", node.os());
  json.text("owner", "");
  const std::vector<std::string> partitions(node.partitions().begin(), node.partitions().end());
  json.words("partitions", partitions);
  json.number("port", node.port());
  json.number("real_memory", static_cast<std::int64_t>(node.memory_mb()));
  json.text("comment", node.comment());
  json.text("extra", node.extra());
  json.text("reason", node.reason());
  json.set_number("reason_changed_at", node.reason_time());
  json.text("reason_set_by_user", node.reason_user());
  json.set_number("resume_after", 0);
  json.text("reservation", node.reservation());
  json.number("alloc_memory", static_cast<std::int64_t>(node.memory_allocated_mb()));
  json.number("alloc_cpus", node.cpus_allocated());
  const std::uint32_t idle =
      node.cpus_effective() - std::min(node.cpus_effective(), node.cpus_allocated());
  json.number("alloc_idle_cpus", idle);
  json.text("tres_used", node.alloc_tres());
  json.real("tres_weighted", 0.0);
  json.set_number("slurmd_start_time", node.started());
  json.number("sockets", node.sockets());
  json.number("threads", node.threads_per_core());
  json.number("temporary_disk", static_cast<std::int64_t>(node.tmp_disk_mb()));
  json.number("weight", node.weight());
  json.text("tres", node.cfg_tres());
  json.text("version", node.version());
  json.end_object();
}

int nodes(Session& session, const Value& value) {
  wire::ListNodes ask;
  if (value) {
    const Result<std::vector<std::string>> names = text::expand_hostlist(*value);
    if (!names) return session.complain(fmt::format("Invalid hostlist: {}", *value));
    for (const std::string& name : *names) ask.add_names(name);
  }
  const Result<wire::NodesReply> reply = session.ask<wire::NodesReply>(ask);
  if (!reply) return session.complain("slurm_load_node error", reply.error());
  JsonText json;
  json.begin_object();
  json.begin_array("nodes");
  for (const wire::NodeInfo& node : reply->nodes()) {
    if (node.state() != "FUTURE" || session.future || value) append_node(json, node);
  }
  json.end_array();
  json.set_number("last_update", reply->now());
  finish(session, json, reply->cluster_name());
  return 0;
}

std::optional<std::int64_t> if_set(bool set, std::uint64_t value) {
  return set ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
}

void append_partition(JsonText& json, const wire::PartitionInfo& p) {
  json.begin_object();
  json.begin_object("nodes");
  json.text("allowed_allocation", "");
  json.text("configured", p.nodes());
  json.number("total", p.total_nodes());
  json.end_object();
  json.begin_object("accounts");
  json.text("allowed", p.allow_accounts() == "ALL" ? "" : p.allow_accounts());
  json.text("deny", "");
  json.end_object();
  json.begin_object("groups");
  json.text("allowed", p.allow_groups() == "ALL" ? "" : p.allow_groups());
  json.end_object();
  json.begin_object("qos");
  json.text("allowed", p.allow_qos() == "ALL" ? "" : p.allow_qos());
  json.text("deny", "");
  json.text("assigned", "");
  json.end_object();
  json.text("alternate", "");
  json.begin_object("tres");
  json.text("billing_weights", "");
  json.text("configured", p.tres());
  json.end_object();
  json.text("cluster", "");
  json.words("select_type", std::vector<std::string>{"NONE"});
  json.begin_object("cpus");
  json.words("task_binding", {});
  json.number("total", p.total_cpus());
  json.end_object();
  json.begin_object("defaults");
  json.number_or_unset("partition_memory_per_cpu",
                       if_set(p.has_def_mem_per_cpu_mb(), p.def_mem_per_cpu_mb()));
  json.set_number("partition_memory_per_node", static_cast<std::int64_t>(p.def_mem_per_node_mb()));
  json.number_or_unset("time", if_set(p.has_default_time_minutes(), p.default_time_minutes()));
  json.text("job", p.job_defaults());
  json.end_object();
  std::vector<std::string> flags;
  if (p.is_default()) flags.emplace_back("DEFAULT");
  if (p.hidden()) flags.emplace_back("HIDDEN");
  if (p.root_only()) flags.emplace_back("ROOT_ONLY");
  if (p.disable_root()) flags.emplace_back("NO_ROOT");
  if (p.least_loaded()) flags.emplace_back("LLN");
  json.words("flags", flags);
  json.begin_object("partition");
  json.text("exclusive", p.exclusive().empty() ? "NO" : p.exclusive());
  json.text("oversubscribe", p.over_subscribe().empty() ? "NO" : p.over_subscribe());
  json.words("state", std::vector<std::string>{p.state()});
  json.end_object();
  json.number("grace_time", p.grace_seconds());
  json.begin_object("maximums");
  json.number_or_infinite("cpus_per_node",
                          if_set(p.has_max_cpus_per_node(), p.max_cpus_per_node()));
  json.number_or_infinite("cpus_per_socket",
                          if_set(p.has_max_cpus_per_socket(), p.max_cpus_per_socket()));
  json.number_or_unset("partition_memory_per_cpu",
                       if_set(p.has_max_mem_per_cpu_mb(), p.max_mem_per_cpu_mb()));
  json.set_number("partition_memory_per_node", static_cast<std::int64_t>(p.max_mem_per_node_mb()));
  json.number_or_infinite("nodes", if_set(p.has_max_nodes(), p.max_nodes()));
  json.number_or_infinite("time", if_set(p.has_max_time_minutes(), p.max_time_minutes()));
  json.unset_number("over_time_limit");
  json.end_object();
  json.begin_object("minimums");
  json.number("nodes", p.min_nodes());
  json.end_object();
  json.text("name", p.name());
  json.text("node_sets", p.node_sets());
  json.words("preempt_mode", std::vector<std::string>{"CLUSTER_GLOBAL"});
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

int partitions(Session& session, const Value& value) {
  wire::ListNodes ask;
  ask.set_with_partitions(true);
  const Result<wire::NodesReply> reply = session.ask<wire::NodesReply>(ask);
  if (!reply) return session.complain("slurm_load_partitions error", reply.error());
  JsonText json;
  json.begin_object();
  json.begin_array("partitions");
  for (const wire::PartitionInfo& partition : reply->partitions()) {
    const bool wanted = value ? partition.name() == *value : session.all || !partition.hidden();
    if (wanted) append_partition(json, partition);
  }
  json.end_array();
  json.set_number("last_update", reply->now());
  finish(session, json, reply->cluster_name());
  return 0;
}

int licenses(Session& session, const Value& value) {
  const Result<std::vector<License>> all = licenses_of(session);
  if (!all) return session.complain("slurm_load_licenses error", all.error());
  JsonText json;
  json.begin_object();
  json.begin_array("licenses");
  for (const License& license : *all) {
    if (value && license.name != *value) continue;
    const std::uint64_t used = std::min(license.used, license.total);
    json.begin_object();
    json.text("LicenseName", license.name);
    json.unsigned_number("Total", license.total);
    json.unsigned_number("Used", used);
    json.unsigned_number("Free", license.total - used);
    json.boolean("Remote", false);
    for (const char* key : {"Reserved", "LastConsumed", "LastDeficit", "LastUpdate"}) {
      json.number(key, 0);
    }
    json.end_object();
  }
  json.end_array();
  finish(session, json, "");
  return 0;
}

int reservations(Session& session, const Value& value) {
  const auto reply = session.ask<wire::ReservationsReply>(wire::ListReservations{});
  if (!reply) return session.complain("slurm_load_reservations error", reply.error());
  session.out += reservations_json(*reply, value.value_or(""),
                                   json_meta("scontrol", session.argv, session.environment, ""));
  return 0;
}

}  // namespace

int show_json(Session& session, JsonKind kind, const std::optional<std::string>& value) {
  switch (kind) {
    case JsonKind::jobs:
      return jobs(session, value);
    case JsonKind::nodes:
      return nodes(session, value);
    case JsonKind::partitions:
      return partitions(session, value);
    case JsonKind::licenses:
      return licenses(session, value);
    case JsonKind::topology:
      return show_topology(session, value);
    case JsonKind::reservations:
      return reservations(session, value);
  }
  return 1;
}

}  // namespace berth::command::scontrol
