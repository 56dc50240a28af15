#include "command/squeue_json.h"

#include <algorithm>
#include <array>

#include "text/hostlist.h"
#include "text/words.h"

namespace berth::command {
namespace {

using Job = wire::JobInfo;

std::optional<std::int64_t> unless_zero(std::int64_t value) {
  return value == 0 ? std::nullopt : std::optional(value);
}

std::string_view signal_name(int signal) {
  constexpr std::array<std::string_view, 32> kNames = {
      "",     "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
      "SEGV", "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
      "TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "IO",   "PWR",  "SYS"};
  return signal > 0 && signal < 32 ? kNames[static_cast<std::size_t>(signal)] : "";
}

void append_flags(JsonText& json, const Job& job) {
  json.begin_array("flags");
  if (job.min_memory_node_mb() != 0 || job.min_memory_cpu_mb() != 0) {
    json.item("EXACT_MEMORY_REQUESTED");
  }
  if (job.start_time() != 0 && job.state() != "PENDING") json.item("JOB_WAS_RUNNING");
  if (job.account().empty()) json.item("USING_DEFAULT_ACCOUNT");
  if (job.qos().empty()) json.item("USING_DEFAULT_QOS");
  if (job.wckey().empty()) json.item("USING_DEFAULT_WCKEY");
  if (job.kill_on_invalid_dependency()) json.item("KILL_INVALID_DEPENDENCY");
  if (!job.dependency().empty() || job.priority() == 0) json.item("DEPENDENT");
  if (job.scheduler() == "Backfill") json.item("BACKFILL_SCHEDULED");
  json.end_array();
}

/// The cores of one node: those whose hardware threads the job holds.
void append_sockets(JsonText& json, const wire::NodeDetail& detail, const wire::NodeInfo* node) {
  json.begin_array("sockets");
  if (node != nullptr && node->cores_per_socket() > 0) {
    std::vector<bool> taken(std::size_t{node->sockets()} * node->cores_per_socket());
    const std::uint32_t threads = std::max(1U, node->threads_per_core());
    for (const std::string_view part : text::split(detail.cpu_ids(), ',')) {
      if (part.empty()) continue;
      const std::size_t dash = part.find('-');
      const auto first = std::strtoul(std::string(part.substr(0, dash)).c_str(), nullptr, 10);
      const auto last = dash == part.npos
                            ? first
                            : std::strtoul(std::string(part.substr(dash + 1)).c_str(), nullptr, 10);
      for (auto cpu = first; cpu <= last && cpu / threads < taken.size(); ++cpu) {
        taken[cpu / threads] = true;
      }
    }
    for (std::uint32_t socket = 0; socket < node->sockets(); ++socket) {
      json.begin_object();
      json.number("index", socket);
      json.begin_array("cores");
      for (std::uint32_t core = 0; core < node->cores_per_socket(); ++core) {
        json.begin_object();
        json.number("index", core);
        json.begin_array("status");
        json.item(taken[std::size_t{socket} * node->cores_per_socket() + core] ? "ALLOCATED"
                                                                               : "UNALLOCATED");
        json.end_array();
        json.end_object();
      }
      json.end_array();
      json.end_object();
    }
  }
  json.end_array();
}

std::size_t count_cpus(std::string_view ids) {
  std::size_t count = 0;
  for (const std::string_view part : text::split(ids, ',')) {
    if (part.empty()) continue;
    const std::size_t dash = part.find('-');
    if (dash == part.npos) {
      ++count;
    } else {
      count += std::strtoul(std::string(part.substr(dash + 1)).c_str(), nullptr, 10) -
               std::strtoul(std::string(part.substr(0, dash)).c_str(), nullptr, 10) + 1;
    }
  }
  return count;
}

void append_resources(JsonText& json, const Job& job, const NodesByName& nodes) {
  if (job.detail().empty()) {
    json.null("job_resources");
    return;
  }
  json.begin_object("job_resources");
  json.words("select_type", std::array<std::string, 1>{"CR_CORE_MEMORY"});
  json.begin_object("nodes");
  json.number("count", job.node_count());
  json.words("select_type", std::array<std::string, 1>{"ONE_ROW"});
  json.text("list", job.nodes());
  json.boolean("whole", job.exclusive() == "NODE" || job.exclusive() == "YES");
  json.begin_array("allocation");
  std::int64_t index = 0;
  for (const wire::NodeDetail& detail : job.detail()) {
    const Result<std::vector<std::string>> names = text::expand_hostlist(detail.node());
    if (!names) continue;
    const auto cpus = static_cast<std::int64_t>(count_cpus(detail.cpu_ids()));
    for (const std::string& name : *names) {
      json.begin_object();
      json.number("index", index++);
      json.text("name", name);
      json.begin_object("cpus");
      json.number("count", cpus);
      json.number("used", cpus);
      json.end_object();
      json.begin_object("memory");
      json.unsigned_number("used", detail.memory_mb());
      json.unsigned_number("allocated", detail.memory_mb());
      json.end_object();
      const auto at = nodes.find(name);
      append_sockets(json, detail, at == nodes.end() ? nullptr : at->second);
      json.end_object();
    }
  }
  json.end_array();
  json.end_object();
  json.number("cpus", job.cpus());
  json.number_or_unset("threads_per_core", unless_zero(job.threads_per_core()));
  json.end_object();
}

std::vector<std::string> gres_of_nodes(const Job& job) {
  std::vector<std::string> out;
  for (const wire::NodeDetail& detail : job.detail()) {
    const Result<std::vector<std::string>> names = text::expand_hostlist(detail.node());
    for (std::size_t i = 0; names && i < names->size(); ++i) out.push_back(detail.gres());
  }
  return out;
}

void append_states(JsonText& json, const Job& job) {
  json.begin_array("job_state");
  json.item(job.state());
  for (const std::string& flag : job.flags()) json.item(flag);
  json.end_array();
}

void append_first_half(JsonText& json, const Job& job, const NodesByName& nodes,
                       std::string_view cluster) {
  json.text("account", job.account());
  json.set_number("accrue_time", job.accrue_time());
  json.text("admin_comment", job.admin_comment());
  json.text("allocating_node", job.alloc_node());
  json.set_number("array_job_id", job.array_job_id());
  json.number_or_unset("array_task_id", job.has_array_task_id()
                                            ? std::optional<std::int64_t>(job.array_task_id())
                                            : std::nullopt);
  json.set_number("array_max_tasks", job.array_throttle());
  std::string_view tasks = job.array_tasks();
  if (tasks.starts_with('[')) tasks.remove_prefix(1);
  if (tasks.ends_with(']')) tasks.remove_suffix(1);
  json.text("array_task_string", tasks);
  json.number("association_id", 0);
  json.text("batch_features", job.batch_features());
  json.boolean("batch_flag", job.batch());
  json.text("batch_host", job.batch_host());
  append_flags(json, job);
  json.text("burst_buffer", "");
  json.text("burst_buffer_state", "");
  json.text("cluster", cluster);
  json.text("cluster_features", "");
  json.text("command", job.command());
  json.text("comment", job.comment());
  json.text("container", "");
  json.text("container_id", "");
  json.boolean("contiguous", job.contiguous());
  json.number("core_spec", job.core_spec());
  json.number("thread_spec", 32766);
  json.number_or_unset("cores_per_socket", unless_zero(job.cores_per_socket()));
  json.begin_object("billable_tres");
  json.boolean("set", !job.alloc_tres().empty());
  json.boolean("infinite", false);
  json.real("number", job.alloc_tres().empty() ? 0.0 : job.cpus());
  json.end_object();
  json.set_number("cpus_per_task", std::max(1U, job.cpus_per_task()));
  json.unset_number("cpu_frequency_minimum");
  json.unset_number("cpu_frequency_maximum");
  json.unset_number("cpu_frequency_governor");
  json.text("cpus_per_tres", job.cpus_per_tres());
  json.text("cron", "");
  json.set_number("deadline", job.deadline());
  json.set_number("delay_boot", 0);
  json.text("dependency", job.dependency());
  append_exit_json(json, "derived_exit_code", job.derived_exit_status(), false);
  json.set_number("eligible_time", job.eligible_time());
  json.set_number("end_time", job.end_time());
  json.text("excluded_nodes", job.exc_nodes());
  append_exit_json(json, "exit_code", job.exit_status(), false);
  json.text("extra", job.extra());
  json.text("failed_node", job.failed_node());
  json.text("features", job.features());
  json.text("federation_origin", "");
  json.text("federation_siblings_active", "");
  json.text("federation_siblings_viable", "");
  json.words("gres_detail", gres_of_nodes(job));
  json.number("group_id", job.gid());
  json.text("group_name", job.group());
  json.set_number("het_job_id", job.het_job_id());
  json.text("het_job_id_set", job.het_set());
  json.set_number("het_job_offset", job.het_offset());
  json.number("job_id", job.id());
  append_resources(json, job, nodes);
  json.begin_array("job_size_str");
  json.end_array();
  append_states(json, job);
  json.set_number("last_sched_evaluation", job.last_sched_eval());
  json.text("licenses", job.licenses());
  json.text("licenses_allocated", job.licenses_taken());
  json.begin_array("mail_type");
  for (const std::string_view type : text::split(job.mail_type(), ',')) {
    if (!type.empty()) json.item(type);
  }
  json.end_array();
  json.text("mail_user", job.mail_user());
}

void append_second_half(JsonText& json, const Job& job) {
  const bool unbounded = !job.has_time_limit_minutes();
  json.set_number("max_cpus", 0);
  json.set_number("max_nodes", job.max_nodes());
  json.text("mcs_label", "");
  json.text("memory_per_tres", job.mem_per_tres());
  json.number("memory_update_delay", 0);
  json.number("memory_update_margin", 0);
  json.text("name", job.name());
  json.text("network", "");
  json.text("nodes", job.nodes());
  json.number("nice", job.nice());
  json.number_or_infinite("tasks_per_core", unless_zero(job.ntasks_per_core()));
  json.set_number("tasks_per_tres", 0);
  json.set_number("tasks_per_node", job.ntasks_per_node());
  json.number_or_infinite("tasks_per_socket", unless_zero(job.ntasks_per_socket()));
  json.set_number("tasks_per_board", 0);
  json.set_number("cpus", job.cpus());
  json.set_number("node_count", job.node_count());
  json.set_number("tasks", job.tasks());
  json.text("partition", job.partition());
  json.text("prefer", job.prefer());
  if (job.has_min_memory_cpu_mb()) {
    json.set_number("memory_per_cpu", static_cast<std::int64_t>(job.min_memory_cpu_mb()));
    json.unset_number("memory_per_node");
  } else {
    json.unset_number("memory_per_cpu");
    json.set_number("memory_per_node", static_cast<std::int64_t>(job.min_memory_node_mb()));
  }
  json.set_number("minimum_cpus_per_node", job.min_cpus_node());
  json.set_number("minimum_tmp_disk_per_node", static_cast<std::int64_t>(job.min_tmp_mb()));
  json.set_number("preempt_time", job.preempt_time());
  json.set_number("preemptable_time", job.preemptable_time());
  json.set_number("pre_sus_time", job.seconds_before_suspend());
  json.boolean("hold", job.priority() == 0 && job.state() == "PENDING");
  json.set_number("priority", job.priority());
  json.begin_array("priority_by_partition");
  json.end_array();
  json.words("profile", std::array<std::string, 1>{"NOT_SET"});
  json.text("qos", job.qos());
  json.boolean("reboot", job.reboot());
  json.text("required_nodes", job.req_nodes());
  json.number("required_switches", job.switches());
  json.boolean("requeue", job.requeue());
  json.set_number("resize_time", 0);
  json.number("restart_cnt", job.restarts());
  json.text("resv_name", job.reservation());
  json.text("runtime", "");
  json.text("scheduled_nodes", job.sched_nodes());
  json.number("segment_size", job.segment_size());
  json.text("selinux_context", "");
  json.begin_array("shared");
  if (job.over_subscribe() == "YES") json.item("oversubscribe");
  if (job.exclusive() == "USER") json.item("user");
  if (job.exclusive() == "NODE" || job.exclusive() == "YES") json.item("none");
  json.end_array();
  json.begin_object("step_id");
  json.text("sluid", job.sluid());
  json.set_number("job_id", job.id());
  json.unset_number("step_het_component");
  json.text("step_id", "entire");
  json.end_object();
  json.number("sockets_per_board", 0);
  json.number_or_unset("sockets_per_node", unless_zero(job.sockets_per_node()));
  json.set_number("start_time", job.start_time());
  json.text("state_description", job.reason_text());
  json.text("state_reason", job.reason());
  json.text("standard_input", job.std_in_asked().empty() ? job.std_in() : job.std_in_asked());
  json.text("standard_output", job.std_out_asked().empty() ? job.std_out() : job.std_out_asked());
  json.text("standard_error", job.std_err_asked().empty() ? job.std_err() : job.std_err_asked());
  json.text("stdin_expanded", job.std_in());
  json.text("stdout_expanded", job.std_out());
  json.text("stderr_expanded", job.std_err());
  json.set_number("submit_time", job.submit_time());
  json.text("submit_line", job.submit_line());
  json.set_number("suspend_time", job.suspend_time());
  json.text("system_comment", "");
  json.number_or_infinite(
      "time_limit",
      unbounded ? std::nullopt : std::optional<std::int64_t>(job.time_limit_minutes()));
  json.set_number("time_minimum", job.time_min_minutes());
  json.number_or_unset("threads_per_core", unless_zero(job.threads_per_core()));
  json.text("tres_bind", job.tres_bind());
  json.text("tres_freq", "");
  json.text("tres_per_job", job.tres_per_job());
  json.text("tres_per_node", job.tres_per_node());
  json.text("tres_per_socket", job.tres_per_socket());
  json.text("tres_per_task", job.tres_per_task());
  json.text("tres_req_str", job.req_tres());
  json.text("tres_alloc_str", job.alloc_tres());
  json.number("user_id", job.uid());
  json.text("user_name", job.user());
  json.number("maximum_switch_wait_time", job.switch_wait());
  json.text("wckey", job.wckey());
  json.text("current_working_directory", job.work_dir());
}

}  // namespace

void append_exit_json(JsonText& json, std::string_view key, std::int32_t status, bool pending) {
  const int code = (status >> 8) & 0xff;
  const int signal = status & 0x7f;
  json.begin_object(key);
  json.begin_array("status");
  json.item(pending ? "PENDING" : signal != 0 ? "SIGNALED" : code != 0 ? "ERROR" : "SUCCESS");
  json.end_array();
  json.set_number("return_code", code);
  json.begin_object("signal");
  json.number_or_unset("id", unless_zero(signal));
  json.text("name", signal_name(signal));
  json.end_object();
  json.end_object();
}

void append_job_json(JsonText& json, const wire::JobInfo& job, const NodesByName& nodes,
                     std::string_view cluster) {
  json.begin_object();
  append_first_half(json, job, nodes, cluster);
  append_second_half(json, job);
  json.end_object();
}

std::string squeue_json(const SqueueOptions& options, const wire::JobsReply& reply,
                        const wire::NodesReply& nodes, const Shown& shown, const Viewer& viewer,
                        const JsonMeta& meta) {
  NodesByName by_name;
  for (const wire::NodeInfo& node : nodes.nodes()) by_name.emplace(node.name(), &node);
  JsonText json;
  json.begin_object();
  json.begin_array("jobs");
  for (const wire::JobInfo& job : reply.jobs()) {
    if (wanted(options, job, shown, viewer)) append_job_json(json, job, by_name, shown.cluster);
  }
  json.end_array();
  json.set_number("last_backfill", reply.last_backfill());
  json.set_number("last_update", reply.now());
  append_meta(json, meta);
  json.end_object();
  return std::move(json).done();
}

}  // namespace berth::command
