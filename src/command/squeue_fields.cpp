#include "command/squeue_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "command/gpu_use_text.h"
#include "command/show_states.h"
#include "wire/step_ids.h"

namespace berth::command {
namespace {

using Job = wire::JobInfo;
using Out = std::string;

/// "[1-9%2]" without brackets, cut at a comma where it is too long: "1,3,5,...%2".
std::string_view inner_tasks(const Job& job) {
  std::string_view tasks = job.array_tasks();
  if (tasks.starts_with('[')) tasks.remove_prefix(1);
  if (tasks.ends_with(']')) tasks.remove_suffix(1);
  return tasks;
}
void append_array_tasks(Out& out, const Job& job, const Shown& shown) {
  std::string_view tasks = inner_tasks(job);
  const std::size_t percent = tasks.find('%');
  const std::string_view throttle =
      percent == tasks.npos ? std::string_view() : tasks.substr(percent);
  tasks = tasks.substr(0, percent);
  if (shown.array_text_most != 0 && tasks.size() > shown.array_text_most) {
    const std::size_t comma = tasks.substr(0, shown.array_text_most).rfind(',');
    out += tasks.substr(0, comma == tasks.npos ? shown.array_text_most : comma + 1);
    out += "...";
  } else {
    out += tasks;
  }
  out += throttle;
}

bool never_ends(const Job& job) {
  return !job.has_time_limit_minutes();
}

void append_number_or(Out& out, std::uint32_t value, std::string_view missing) {
  if (value == 0) {
    out += missing;
  } else {
    append_unsigned(out, value);
  }
}

void append_time_limit(Out& out, const Job& job) {
  if (job.has_time_limit_minutes()) {
    append_run_time(out, std::int64_t{job.time_limit_minutes()} * 60);
  } else {
    out += "UNLIMITED";
  }
}

void append_left(Out& out, const Job& job, std::int64_t now) {
  if (never_ends(job)) {
    out += "UNLIMITED";
    return;
  }
  const std::int64_t left = std::int64_t{job.time_limit_minutes()} * 60 - run_seconds_of(job, now);
  if (left >= 0) {
    append_run_time(out, left);
  } else {
    out += "INVALID";
  }
}

void append_end(Out& out, const Job& job, const Shown& shown) {
  if (job.start_time() != 0 && never_ends(job) && !has_ended(job)) {
    out += "NONE";
  } else {
    append_time(out, job.end_time(), shown, "N/A");
  }
}

std::uint64_t least_memory(const Job& job) {
  return job.has_min_memory_cpu_mb() ? job.min_memory_cpu_mb() : job.min_memory_node_mb();
}

void append_reason_or_nodes(Out& out, const Job& job) {
  const std::string& state = job.state();
  const bool reason = (state == "PENDING" && job.nodes().empty()) || state == "TIMEOUT" ||
                      state == "OUT_OF_MEMORY" || state == "DEADLINE" || state == "FAILED";
  const bool completing =
      std::ranges::find(job.flags(), std::string_view("COMPLETING")) != job.flags().end();
  if (reason && !completing) {
    out += '(';
    out += job.reason();
    out += ')';
  } else {
    out += job.nodes();
  }
}

std::string_view pick(const Shown& shown, const std::string& asked, const std::string& expanded) {
  return shown.expand_patterns || asked.empty() ? std::string_view(expanded)
                                                : std::string_view(asked);
}

std::int64_t late_when_zero(std::int64_t time) {
  return time == 0 ? INT64_MAX : time;
}

// Shorthand for the table below: SHOW appends an expression's text, COUNT a number, WHEN a time.
#define SHOW(...)                                                        \
  [](const JobRow& row, [[maybe_unused]] const Shown& shown, Out& out) { \
    [[maybe_unused]] const Job& j = *row.job;                            \
    __VA_ARGS__;                                                         \
  }
#define TEXT(field, missing) SHOW(append_or(out, j.field(), missing))
#define COUNT(field) SHOW(append_number(out, j.field()))
#define STAR(field) SHOW(append_number_or(out, j.field(), "*"))
#define WHEN(field) SHOW(append_time(out, j.field(), shown, "N/A"))
#define FIXED(text) SHOW(out += (text))
#define BY(...)                           \
  [](const JobRow& row) -> std::int64_t { \
    const Job& j = *row.job;              \
    return __VA_ARGS__;                   \
  }

constexpr Field<JobRow> kJobFields[] = {
    {'a', "Account", "ACCOUNT", TEXT(account, "(null)")},
    {'A', "JobID", "JOBID", COUNT(id), BY(j.id())},
    {'b', "tres-per-node", "TRES_PER_NODE", TEXT(tres_per_node, "N/A")},
    {'B', "BatchHost", "EXEC_HOST", TEXT(batch_host, "n/a")},
    {'c', "MinCpus", "MIN_CPUS", COUNT(min_cpus_node), BY(j.min_cpus_node())},
    {'C', "NumCPUs", "CPUS", COUNT(cpus), BY(j.cpus())},
    {'d', "MinTmpDisk", "MIN_TMP_DISK", SHOW(append_memory(out, j.min_tmp_mb(), shown.convert)),
     BY(static_cast<std::int64_t>(j.min_tmp_mb()))},
    {'D', "NumNodes", "NODES", COUNT(node_count), BY(j.node_count())},
    {'e', "EndTime", "END_TIME", SHOW(append_end(out, j, shown)), BY(late_when_zero(j.end_time()))},
    {'E', "Dependency", "DEPENDENCY", TEXT(dependency, "(null)")},
    {'f', "Feature", "FEATURES", TEXT(features, "(null)")},
    {'F', "ArrayJobID", "ARRAY_JOB_ID",
     SHOW(append_unsigned(out, j.has_array_job_id() ? j.array_job_id() : j.id())),
     BY(j.has_array_job_id() ? j.array_job_id() : j.id())},
    {'g', "GroupName", "GROUP", TEXT(group, "(null)")},
    {'G', "GroupID", "GROUP", COUNT(gid), BY(j.gid())},
    {'h', "OverSubscribe", "OVER_SUBSCRIBE", TEXT(over_subscribe, "NO")},
    {'H', "Sockets", "SOCKETS_PER_NODE", STAR(sockets_per_node), BY(j.sockets_per_node())},
    {'i', "JobArrayID", "JOBID", SHOW(append_job_id(out, j, shown)),
     BY((std::int64_t{j.has_array_job_id() ? j.array_job_id() : j.id()} << 32) +
        (j.has_array_task_id()     ? j.array_task_id()
         : j.array_tasks().empty() ? 0
                                   : INT32_MAX))},
    {'I', "Cores", "CORES_PER_SOCKET", STAR(cores_per_socket), BY(j.cores_per_socket())},
    {'j', "Name", "NAME", TEXT(name, "(null)")},
    {'J', "Threads", "THREADS_PER_CORE", STAR(threads_per_core), BY(j.threads_per_core())},
    {'k', "Comment", "COMMENT", TEXT(comment, "(null)")},
    {'K', "ArrayTaskID", "ARRAY_TASK_ID",
     SHOW(if (j.has_array_task_id()) append_unsigned(out, j.array_task_id());
          else if (!j.array_tasks().empty()) append_array_tasks(out, j, shown); else out += "N/A"),
     BY(j.has_array_task_id()     ? j.array_task_id()
        : j.array_tasks().empty() ? -1
                                  : INT32_MAX)},
    {'l', "TimeLimit", "TIME_LIMIT", SHOW(append_time_limit(out, j)),
     BY(j.has_time_limit_minutes() ? j.time_limit_minutes() : INT64_MAX)},
    {'L', "TimeLeft", "TIME_LEFT", SHOW(append_left(out, j, shown.now)),
     BY(j.has_time_limit_minutes() ? late_when_zero(j.end_time()) : INT64_MAX)},
    {'m', "MinMemory", "MIN_MEMORY", SHOW(append_memory(out, least_memory(j), shown.convert)),
     BY(static_cast<std::int64_t>(least_memory(j)))},
    {'M', "TimeUsed", "TIME", SHOW(append_run_time(out, run_seconds_of(j, shown.now))),
     BY(j.start_time() == 0 || j.state() == "PENDING" ? 0 : -j.start_time())},
    {'n', "ReqNodes", "REQ_NODES", TEXT(req_nodes, "")},
    {'N', "NodeList", "NODELIST", TEXT(nodes, "")},
    {'o', "Command", "COMMAND", TEXT(command, "(null)")},
    {'O', "Contiguous", "CONTIGUOUS", FIXED(j.contiguous() ? "1" : "0")},
    {'p', "Priority", "PRIORITY",
     SHOW(fmt::format_to(std::back_inserter(out), "{:.14f}", j.priority() / 4294967296.0)),
     BY(j.priority())},
    {'P', "Partition", "PARTITION", SHOW(append_or(out, row.partition, "(null)"))},
    {'q', "QOS", "QOS", TEXT(qos, "(null)")},
    {'Q', "PriorityLong", "PRIORITY", COUNT(priority), BY(j.priority())},
    {'r', "Reason", "REASON", TEXT(reason, "None")},
    {'R', "ReasonList", "NODELIST(REASON)", SHOW(append_reason_or_nodes(out, j))},
    {'s', "Sluid", "SLUID", TEXT(sluid, "(null)")},
    {'S', "StartTime", "START_TIME", WHEN(start_time), BY(late_when_zero(j.start_time()))},
    {'t', "StateCompact", "ST", FIXED(shown_state(j).brief), BY(state_number(j))},
    {'T', "State", "STATE", FIXED(shown_state(j).name), BY(state_number(j))},
    {'u', "UserName", "USER", TEXT(user, "(null)")},
    {'U', "UserID", "UID", COUNT(uid), BY(j.uid())},
    {'v', "Reservation", "RESERVATION", TEXT(reservation, "(null)")},
    {'V', "SubmitTime", "SUBMIT_TIME", WHEN(submit_time), BY(j.submit_time())},
    {'w', "WCKey", "WCKEY", TEXT(wckey, "(null)")},
    {'W', "Licenses", "LICENSES", TEXT(licenses, "(null)")},
    {'x', "ExcNodes", "EXC_NODES", TEXT(exc_nodes, "")},
    {'X', "CoreSpec", "CORE_SPEC", SHOW(append_number_or(out, j.core_spec(), "N/A"))},
    {'y', "Nice", "NICE", COUNT(nice), BY(j.nice())},
    {'Y', "SchedNodes", "SCHEDNODES", TEXT(sched_nodes, "(null)")},
    {'z', "SCT", "S:C:T",
     SHOW(append_number_or(out, j.sockets_per_node(), "*"); out += ':';
          append_number_or(out, j.cores_per_socket(), "*"); out += ':';
          append_number_or(out, j.threads_per_core(), "*"))},
    {'Z', "WorkDir", "WORK_DIR", TEXT(work_dir, "(null)")},
    {0, "AccrueTime", "ACCRUE_TIME", WHEN(accrue_time)},
    {0, "admin_comment", "ADMIN_COMMENT", TEXT(admin_comment, "(null)")},
    {0, "AllocNodes", "ALLOC_NODES", TEXT(alloc_node, "(null)")},
    {0, "AllocSID", "ALLOC_SID", COUNT(alloc_sid)},
    {0, "AssocID", "ASSOC_ID", FIXED("0")},
    {0, "BatchFlag", "BATCH_FLAG", FIXED(j.batch() ? "1" : "0")},
    {0, "BoardsPerNode", "BOARDS_PER_NODE", FIXED("N/A")},
    {0, "BurstBuffer", "BURST_BUFFER", FIXED("(null)")},
    {0, "BurstBufferState", "BURST_BUFFER_STATE", FIXED("(null)")},
    {0, "Cluster", "CLUSTER", SHOW(append_or(out, shown.cluster, "(null)"))},
    {0, "ClusterFeature", "CLUSTER_FEATURES", FIXED("(null)")},
    {0, "Container", "CONTAINER", FIXED("(null)")},
    {0, "ContainerID", "CONTAINER_ID", FIXED("(null)")},
    {0, "CPUFreq", "CPU_FREQ", FIXED("N/A")},
    {0, "cpus-per-task", "CPUS_PER_TASK", SHOW(append_number_or(out, j.cpus_per_task(), "N/A"))},
    {0, "cpus-per-tres", "CPUS_PER_TRES", TEXT(cpus_per_tres, "N/A")},
    {0, "CronJob", "CRON_JOB", FIXED("No")},
    {0, "Deadline", "DEADLINE", WHEN(deadline)},
    {0, "DelayBoot", "DELAY_BOOT", FIXED("0:00")},
    {0, "DerivedEC", "DERIVED_EC", SHOW(append_exit(out, j.derived_exit_status()))},
    {0, "EligibleTime", "ELIGIBLE_TIME", WHEN(eligible_time)},
    {0, "Exclusive", "EXCLUSIVE", TEXT(exclusive, "NO")},
    {0, "exit_code", "EXIT_CODE", SHOW(append_exit(out, j.exit_status()))},
    {0, "HetJobID", "HET_JOB_ID",
     SHOW(if (j.has_het_job_id()) append_unsigned(out, j.het_job_id()); else out += "N/A")},
    {0, "HetJobIDSet", "HET_JOB_ID_SET", TEXT(het_set, "N/A")},
    {0, "HetJobOffset", "HET_JOB_OFFSET",
     SHOW(if (j.has_het_job_id()) append_unsigned(out, j.het_offset()); else out += "N/A")},
    {0, "LastSchedEval", "LAST_SCHED_EVAL", WHEN(last_sched_eval)},
    {0, "LicensesAlloc", "LICENSES_ALLOC", TEXT(licenses_taken, "(null)")},
    {0, "MaxCPUs", "MAX_CPUS", FIXED("0")},
    {0, "MaxNodes", "MAX_NODES", COUNT(max_nodes)},
    {0, "MCSLabel", "MCSLABEL", FIXED("N/A")},
    {0, "mem-per-tres", "MEM_PER_TRES", TEXT(mem_per_tres, "N/A")},
    {0, "MinTime", "MIN_TIME",
     SHOW(if (j.has_time_min_minutes())
              append_run_time(out, std::int64_t{j.time_min_minutes()} * 60);
          else out += "N/A")},
    {0, "Network", "NETWORK", FIXED("(null)")},
    {0, "Nodes", "NODELIST", TEXT(nodes, "")},
    {0, "NTPerBoard", "NTASKS_PER_BOARD", FIXED("N/A")},
    {0, "NTPerCore", "NTASKS_PER_CORE", SHOW(append_number_or(out, j.ntasks_per_core(), "N/A"))},
    {0, "NTPerNode", "NTASKS_PER_NODE", SHOW(append_number_or(out, j.ntasks_per_node(), "N/A"))},
    {0, "NTPerSocket", "NTASKS_PER_SOCKET",
     SHOW(append_number_or(out, j.ntasks_per_socket(), "N/A"))},
    {0, "NumTasks", "TASKS", COUNT(tasks)},
    {0, "Origin", "ORIGIN", FIXED("N/A")},
    {0, "OriginRaw", "ORIGIN_RAW", FIXED("N/A")},
    {0, "PendingTime", "PENDING_TIME",
     SHOW(append_number(
         out, (j.state() != "PENDING" && j.start_time() != 0 ? j.start_time() : shown.now) -
                  j.submit_time()))},
    {0, "PreemptTime", "PREEMPT_TIME", WHEN(preempt_time)},
    {0, "Prefer", "PREFER", TEXT(prefer, "(null)")},
    {0, "Profile", "PROFILE", FIXED("None")},
    {0, "Reboot", "REBOOT", FIXED(j.reboot() ? "1" : "0")},
    {0, "ReqSwitch", "REQ_SWITCH", COUNT(switches)},
    {0, "Requeue", "REQUEUE", FIXED(j.requeue() ? "1" : "0")},
    {0, "ResizeTime", "RESIZE_TIME", FIXED("N/A")},
    {0, "RestartCnt", "RESTART_COUNT", COUNT(restarts)},
    {0, "ResvPort", "RESV_PORT", FIXED("(null)")},
    {0, "Runtime", "RUNTIME", SHOW(append_run_time(out, run_seconds_of(j, shown.now)))},
    {0, "SegmentSize", "SEGMENT_SIZE", COUNT(segment_size)},
    {0, "SiblingsActive", "ACTIVE_SIBLINGS", FIXED("N/A")},
    {0, "SiblingsActiveRaw", "ACTIVE_SIBLINGS_RAW", FIXED("N/A")},
    {0, "SiblingsViable", "VIABLE_SIBLINGS", FIXED("N/A")},
    {0, "SiblingsViableRaw", "VIABLE_SIBLINGS_RAW", FIXED("N/A")},
    {0, "SPerBoard", "SOCKETS_PER_BOARD", FIXED("N/A")},
    {0, "StdErr", "STDERR", SHOW(out += pick(shown, j.std_err_asked(), j.std_err()))},
    {0, "StdIn", "STDIN", SHOW(out += pick(shown, j.std_in_asked(), j.std_in()))},
    {0, "StdOut", "STDOUT", SHOW(out += pick(shown, j.std_out_asked(), j.std_out()))},
    {0, "system_comment", "SYSTEM_COMMENT", FIXED("(null)")},
    {0, "tres-alloc", "TRES_ALLOC", TEXT(alloc_tres, "N/A")},
    {0, "tres-bind", "TRES_BIND", TEXT(tres_bind, "N/A")},
    {0, "tres-freq", "TRES_FREQ", FIXED("N/A")},
    {0, "tres-per-job", "TRES_PER_JOB", TEXT(tres_per_job, "N/A")},
    {0, "tres-per-socket", "TRES_PER_SOCKET", TEXT(tres_per_socket, "N/A")},
    {0, "tres-per-step", "TRES_PER_STEP", FIXED("N/A")},
    {0, "tres-per-task", "TRES_PER_TASK", TEXT(tres_per_task, "N/A")},
    {0, "Wait4Switch", "WAIT4SWITCH", COUNT(switch_wait)},
    {0, "Gres", "TRES_PER_NODE", TEXT(tres_per_node, "N/A")},
    {0, "cpus", "CPUS", COUNT(cpus)},
    // berth's own.
    {0, "GpuBusy", "GPU_BUSY", SHOW(append_gpu_busy(out, j.gpu_use()))},
    {0, "GpuMemory", "GPU_MEMORY", SHOW(append_gpu_memory(out, j.gpu_use(), shown.convert))},
    {0, "GpuIdle", "GPU_IDLE", SHOW(append_gpu_idle(out, j.gpu_use()))},
    {0, "GpuPower", "GPU_POWER", SHOW(append_gpu_power(out, j.gpu_use()))},
    {0, "GpuEnergy", "GPU_ENERGY", SHOW(append_gpu_energy(out, j.gpu_use(), shown.convert))},
};

#undef SHOW
#undef COUNT
#undef WHEN
#undef BY
#undef STAR
#undef TEXT
#undef FIXED

#define SHOW(...)                                                         \
  [](const StepRow& row, [[maybe_unused]] const Shown& shown, Out& out) { \
    [[maybe_unused]] const wire::StepInfo& s = *row.step;                 \
    __VA_ARGS__;                                                          \
  }
#define BY(...)                            \
  [](const StepRow& row) -> std::int64_t { \
    const wire::StepInfo& s = *row.step;   \
    return __VA_ARGS__;                    \
  }

std::int64_t step_run_seconds(const wire::StepInfo& step, std::int64_t now) {
  return step.start_time() == 0 ? 0 : now - step.start_time();
}
std::uint32_t array_or_job(const wire::StepInfo& step) {
  return step.has_array_job_id() ? step.array_job_id() : step.job_id();
}

constexpr Field<StepRow> kStepFields[] = {
    {'A', "NumTasks", "TASKS", SHOW(append_unsigned(out, s.tasks())), BY(s.tasks())},
    {'b', "tres-per-node", "TRES_PER_NODE", SHOW(append_or(out, s.tres_per_node(), "(null)"))},
    {0, "Gres", "TRES_PER_NODE", SHOW(append_or(out, s.tres_per_node(), "(null)"))},
    {'C', "NumCPUs", "CPUS", SHOW(append_unsigned(out, s.cpus())), BY(s.cpus())},
    {'D', "NumNodes", "NODES", SHOW(append_unsigned(out, s.node_count())), BY(s.node_count())},
    {'F', "ArrayJobID", "ARRAY_JOB_ID", SHOW(append_unsigned(out, array_or_job(s))),
     BY(array_or_job(s))},
    {'i', "StepID", "STEPID", SHOW(append_step_id(out, s)),
     BY((std::int64_t{s.job_id()} << 32) + s.step_id())},
    {'j', "StepName", "NAME", SHOW(append_or(out, s.name(), "(null)"))},
    {0, "Name", "NAME", SHOW(append_or(out, s.name(), "(null)"))},
    {0, "JobID", "JOBID", SHOW(append_unsigned(out, s.job_id())), BY(s.job_id())},
    {'K', "ArrayTaskID", "ARRAY_TASK_ID",
     SHOW(if (s.has_array_task_id()) append_unsigned(out, s.array_task_id()); else out += "N/A"),
     BY(s.array_task_id())},
    {'l', "TimeLimit", "TIME_LIMIT",
     SHOW(if (s.has_time_limit_minutes())
              append_run_time(out, std::int64_t{s.time_limit_minutes()} * 60);
          else out += "UNLIMITED"),
     BY(s.has_time_limit_minutes() ? s.time_limit_minutes() : INT64_MAX)},
    {'M', "TimeUsed", "TIME", SHOW(append_run_time(out, step_run_seconds(s, shown.now))),
     BY(-s.start_time())},
    {'N', "Nodes", "NODELIST", SHOW(out += s.nodes())},
    {0, "NodeList", "NODELIST", SHOW(out += s.nodes())},
    {'P', "Partition", "PARTITION", SHOW(append_or(out, s.partition(), "(null)"))},
    {'S', "StartTime", "START_TIME", SHOW(append_time(out, s.start_time(), shown, "N/A")),
     BY(s.start_time())},
    {'t', "StepState", "STATE", SHOW(append_or(out, s.state(), "RUNNING"))},
    {'T', "State", "STATE", SHOW(append_or(out, s.state(), "RUNNING"))},
    {'u', "UserName", "USER", SHOW(append_or(out, s.user(), "(null)"))},
    {'U', "UserID", "UID", SHOW(append_unsigned(out, s.uid())), BY(s.uid())},
    {0, "Cluster", "CLUSTER", SHOW(append_or(out, shown.cluster, "(null)"))},
    {0, "tres-alloc", "TRES_ALLOC", SHOW(append_or(out, s.tres(), "N/A"))},
};

#undef SHOW
#undef BY

}  // namespace

std::span<const Field<JobRow>> job_fields() {
  return kJobFields;
}
std::span<const Field<StepRow>> step_fields() {
  return kStepFields;
}

void append_job_id(std::string& out, const wire::JobInfo& job, const Shown& shown) {
  if (job.has_array_job_id() && (job.has_array_task_id() || !job.array_tasks().empty())) {
    append_unsigned(out, job.array_job_id());
    out += '_';
    if (job.has_array_task_id()) {
      append_unsigned(out, job.array_task_id());
    } else {
      out += '[';
      append_array_tasks(out, job, shown);
      out += ']';
    }
  } else if (job.has_het_job_id()) {
    append_unsigned(out, job.het_job_id());
    out += '+';
    append_unsigned(out, job.het_offset());
  } else {
    append_unsigned(out, job.id());
  }
}

void append_step_id(std::string& out, const wire::StepInfo& step) {
  if (step.has_array_job_id() && step.has_array_task_id()) {
    append_unsigned(out, step.array_job_id());
    out += '_';
    append_unsigned(out, step.array_task_id());
  } else {
    append_unsigned(out, step.job_id());
  }
  out += '.';
  switch (step.step_id()) {
    case wire::kBatchStep:
      out += "batch";
      break;
    case wire::kExternStep:
      out += "extern";
      break;
    case wire::kInteractiveStep:
      out += "interactive";
      break;
    default:
      append_unsigned(out, step.step_id());
  }
}

std::int64_t run_seconds_of(const wire::JobInfo& job, std::int64_t now) {
  if (job.start_time() == 0 || job.state() == "PENDING") return 0;
  if (job.state() == "SUSPENDED") return job.seconds_before_suspend();
  const std::int64_t end = has_ended(job) && job.end_time() != 0 ? job.end_time() : now;
  if (job.suspend_time() != 0) return job.seconds_before_suspend() + end - job.suspend_time();
  return std::max<std::int64_t>(0, end - job.start_time());
}

}  // namespace berth::command
