#include "command/sacct_json.h"

#include <algorithm>
#include <array>

#include "command/show_states.h"
#include "command/squeue_fields.h"
#include "command/squeue_json.h"
#include "text/words.h"

namespace berth::command {
namespace {

using Job = wire::JobInfo;

void append_cpu_time(JsonText& json, std::string_view key, std::uint64_t microseconds) {
  json.begin_object(key);
  json.unsigned_number("seconds", microseconds / 1'000'000);
  json.unsigned_number("microseconds", microseconds % 1'000'000);
  json.end_object();
}

/// "cpu=8,gres/gpu=2" as a list of objects.
void append_tres(JsonText& json, std::string_view key, std::string_view tres) {
  json.begin_array(key);
  for (const std::string_view part : text::split(tres, ',')) {
    const std::size_t eq = part.find('=');
    if (eq == part.npos) continue;
    const std::string_view name = part.substr(0, eq);
    std::string_view digits = part.substr(eq + 1);
    std::uint64_t count = 0;
    while (!digits.empty() && digits.front() >= '0' && digits.front() <= '9') {
      count = count * 10 + static_cast<std::uint64_t>(digits.front() - '0');
      digits.remove_prefix(1);
    }
    if (digits == "G") count *= 1024;
    if (digits == "T") count *= std::uint64_t{1024} * 1024;
    const std::size_t slash = name.find('/');
    json.begin_object();
    json.text("type", name.substr(0, slash));
    json.text("name", slash == name.npos ? std::string_view() : name.substr(slash + 1));
    json.unsigned_number("count", count);
    json.end_object();
  }
  json.end_array();
}

struct CpuSum {
  std::uint64_t user = 0;
  std::uint64_t system = 0;
};

void append_times(JsonText& json, const Job& job, const CpuSum& sum, std::int64_t now) {
  json.begin_object("time");
  json.number("elapsed", run_seconds_of(job, now));
  json.number("eligible", job.eligible_time());
  json.number("end", has_ended(job) ? job.end_time() : 0);
  json.number("start", job.state() == "PENDING" ? 0 : job.start_time());
  json.number("submission", job.submit_time());
  json.number("suspended", 0);
  append_cpu_time(json, "system", sum.system);
  json.number_or_infinite("limit", job.has_time_limit_minutes()
                                       ? std::optional<std::int64_t>(job.time_limit_minutes())
                                       : std::nullopt);
  append_cpu_time(json, "total", sum.user + sum.system);
  append_cpu_time(json, "user", sum.user);
  json.end_object();
}

void append_step(JsonText& json, const wire::HistoryStep& entry) {
  const wire::StepInfo& step = entry.step();
  json.begin_object();
  json.begin_object("time");
  json.number("elapsed", std::max<std::int64_t>(0, entry.end_time() - step.start_time()));
  json.set_number("end", entry.end_time());
  json.set_number("start", step.start_time());
  append_cpu_time(json, "system", entry.system_microseconds());
  append_cpu_time(json, "total", entry.user_microseconds() + entry.system_microseconds());
  append_cpu_time(json, "user", entry.user_microseconds());
  json.end_object();
  append_exit_json(json, "exit_code", entry.exit_status(), false);
  json.begin_object("nodes");
  json.number("count", step.node_count());
  json.text("range", step.nodes());
  json.end_object();
  json.begin_object("tasks");
  json.number("count", step.tasks());
  json.end_object();
  json.begin_object("step");
  std::string id;
  append_step_id(id, step);
  json.text("id", id);
  json.text("name", step.name());
  json.end_object();
  json.words("state",
             std::array<std::string, 1>{entry.state().empty() ? "RUNNING" : entry.state()});
  json.begin_object("statistics");
  json.begin_object("memory");
  json.unsigned_number("max_rss_kb", entry.max_rss_kb());
  json.end_object();
  json.end_object();
  json.begin_object("tres");
  append_tres(json, "allocated", step.tres());
  json.end_object();
  json.end_object();
}

}  // namespace

void append_history_json(JsonText& json, const wire::HistoryJob& entry, std::string_view cluster,
                         std::int64_t now) {
  const Job& job = entry.job();
  CpuSum sum;
  for (const wire::HistoryStep& step : entry.steps()) {
    sum.user += step.user_microseconds();
    sum.system += step.system_microseconds();
  }
  json.begin_object();
  json.text("account", job.account());
  json.begin_object("comment");
  json.text("administrator", job.admin_comment());
  json.text("job", job.comment());
  json.text("system", "");
  json.end_object();
  json.number("allocation_nodes", job.state() == "PENDING" ? 0 : job.node_count());
  json.begin_object("array");
  json.number("job_id", job.array_job_id());
  json.number_or_unset("task_id", job.has_array_task_id()
                                      ? std::optional<std::int64_t>(job.array_task_id())
                                      : std::nullopt);
  json.text("task", job.array_tasks());
  json.end_object();
  json.text("cluster", cluster);
  json.text("constraints", job.features());
  append_exit_json(json, "derived_exit_code", job.derived_exit_status(), false);
  append_times(json, job, sum, now);
  append_exit_json(json, "exit_code", job.exit_status(), job.state() == "PENDING");
  json.text("extra", job.extra());
  json.text("failed_node", job.failed_node());
  json.text("group", job.group());
  json.begin_object("het");
  json.number("job_id", job.het_job_id());
  json.number_or_unset("job_offset", job.has_het_job_id()
                                         ? std::optional<std::int64_t>(job.het_offset())
                                         : std::nullopt);
  json.end_object();
  json.number("job_id", job.id());
  json.text("name", job.name());
  json.text("licenses", job.licenses());
  json.text("nodes", job.nodes().empty() ? "None assigned" : job.nodes());
  json.text("partition", job.partition());
  json.set_number("priority", job.priority());
  json.text("qos", job.qos());
  json.begin_object("required");
  json.number("CPUs", job.cpus());
  json.number_or_unset("memory_per_cpu",
                       job.has_min_memory_cpu_mb()
                           ? std::optional(static_cast<std::int64_t>(job.min_memory_cpu_mb()))
                           : std::nullopt);
  json.number_or_unset("memory_per_node",
                       job.has_min_memory_node_mb()
                           ? std::optional(static_cast<std::int64_t>(job.min_memory_node_mb()))
                           : std::nullopt);
  json.end_object();
  json.number("restart_cnt", job.restarts());
  json.number("kill_request_user", entry.ended_by());
  json.text("script", entry.script());
  json.begin_object("state");
  json.begin_array("current");
  json.item(job.state());
  for (const std::string& flag : job.flags()) json.item(flag);
  json.end_array();
  json.text("reason", job.reason());
  json.end_object();
  json.begin_array("steps");
  for (const wire::HistoryStep& step : entry.steps()) append_step(json, step);
  json.end_array();
  json.text("submit_line", job.submit_line());
  json.begin_object("tres");
  append_tres(json, "allocated", job.alloc_tres());
  append_tres(json, "requested", job.req_tres());
  json.end_object();
  json.text("user", job.user());
  json.text("stdin", job.std_in());
  json.text("stdout", job.std_out());
  json.text("stderr", job.std_err());
  json.text("working_directory", job.work_dir());
  json.end_object();
}

}  // namespace berth::command
