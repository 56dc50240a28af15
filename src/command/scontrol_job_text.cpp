// What scontrol_job_text.h promises. The order and the words of the lines are Slurm's: programs
// parse them.
#include "command/scontrol_job_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "text/duration.h"
#include "text/hostlist.h"
#include "text/size.h"
#include "wire/step_ids.h"

namespace berth::command::scontrol {
namespace {

std::string first_line(const wire::JobInfo& job) {
  std::string text = fmt::format("JobId={}", job.id());
  if (job.has_array_job_id()) {
    text += fmt::format(" ArrayJobId={}", job.array_job_id());
    if (job.has_array_task_id()) {
      text += fmt::format(" ArrayTaskId={}", job.array_task_id());
    } else {
      // "[3-9%2]" → "3-9%2": recorded so, although the throttle has a key of its own too.
      std::string_view tasks = job.array_tasks();
      if (tasks.starts_with('[')) tasks.remove_prefix(1);
      tasks = tasks.substr(0, tasks.find(']'));
      text += fmt::format(" ArrayTaskId={}", tasks);
    }
    if (job.array_throttle() != 0) {
      text += fmt::format(" ArrayTaskThrottle={}", job.array_throttle());
    }
  }
  if (job.has_het_job_id()) {
    text += fmt::format(" HetJobId={} HetJobOffset={}", job.het_job_id(), job.het_offset());
  }
  return text + fmt::format(" JobName={}", or_null(job.name()));
}

/// While a job waits, the range it asked for; then what it has.
std::string node_count(const wire::JobInfo& job) {
  if (job.state() == "PENDING" && job.max_nodes() != 0) {
    return fmt::format("{}-{}", job.node_count(), job.max_nodes());
  }
  return std::to_string(job.node_count());
}

void add_times(Record& out, const wire::JobInfo& job, const Style& style) {
  out.line(fmt::format(
      "RunTime={} TimeLimit={} TimeMin={}", seconds_text(run_seconds(job, style.now)),
      text::format_minutes(job.has_time_limit_minutes() ? std::optional(job.time_limit_minutes())
                                                        : std::nullopt),
      job.has_time_min_minutes() ? text::format_minutes(job.time_min_minutes()) : "N/A"));
  out.line(fmt::format("SubmitTime={} EligibleTime={}", time_text(job.submit_time(), style),
                       time_text(job.eligible_time(), style)));
  out.line(fmt::format("AccrueTime={}", time_text(job.accrue_time(), style)));
  out.line(fmt::format("StartTime={} EndTime={} Deadline={}", time_text(job.start_time(), style),
                       time_text(job.end_time(), style), time_text(job.deadline(), style, "N/A")));
  if (job.preempt_time() != 0 || job.preemptable_time() != 0) {
    out.line(fmt::format("PreemptEligibleTime={} PreemptTime={}",
                         time_text(job.preemptable_time(), style),
                         time_text(job.preempt_time(), style, "None")));
  }
  out.line(fmt::format("SuspendTime={} SecsPreSuspend={} LastSchedEval={} Scheduler={}",
                       time_text(job.suspend_time(), style, "None"), job.seconds_before_suspend(),
                       time_text(job.last_sched_eval(), style),
                       job.scheduler().empty() ? "Main" : job.scheduler()));
}

bool same_share(const wire::NodeDetail& a, const wire::NodeDetail& b) {
  return a.cpu_ids() == b.cpu_ids() && a.memory_mb() == b.memory_mb() && a.gres() == b.gres();
}

/// What the job holds by node; nodes that hold the same share a line.
void add_detail(Record& out, const wire::JobInfo& job) {
  constexpr std::string_view kKey = "JOB_GRES=";
  std::string_view gres = job.gres_detail();
  if (gres.starts_with(kKey)) gres.remove_prefix(kKey.size());
  out.line(fmt::format("{}{}", kKey, or_null(gres)));
  for (int first = 0; first < job.detail_size();) {
    std::vector<std::string> names;
    int next = first;
    while (next < job.detail_size() && same_share(job.detail(first), job.detail(next))) {
      names.push_back(job.detail(next++).node());
    }
    const wire::NodeDetail& share = job.detail(first);
    out.line(fmt::format("  Nodes={} CPU_IDs={} Mem={} GRES={}", text::compress_hostlist(names),
                         share.cpu_ids(), share.memory_mb(), share.gres()));
    first = next;
  }
}

void add_size(Record& out, const wire::JobInfo& job, const Style& style) {
  out.line(fmt::format("NumNodes={} NumCPUs={} NumTasks={} CPUs/Task={} ReqB:S:C:T=0:0:{}:{}",
                       node_count(job), job.cpus(),
                       job.tasks() == 0 ? "N/A" : std::to_string(job.tasks()),
                       job.cpus_per_task() == 0 ? 1 : job.cpus_per_task(),
                       or_star(job.cores_per_socket()), or_star(job.threads_per_core())));
  out.line(fmt::format("ReqTRES={}", or_null(job.req_tres())));
  out.line(fmt::format("AllocTRES={}", or_null(job.alloc_tres())));
  out.line(fmt::format("Socks/Node={} NtasksPerN:B:S:C={}:0:{}:{} CoreSpec={}",
                       or_star(job.sockets_per_node()), job.ntasks_per_node(),
                       or_star(job.ntasks_per_socket()), or_star(job.ntasks_per_core()),
                       or_star(job.core_spec())));
  if (style.detail) add_detail(out, job);
  const bool by_cpu = job.has_min_memory_cpu_mb();
  std::string memory =
      fmt::format(" MinMemory{}={}", by_cpu ? "CPU" : "Node",
                  text::format_mb(by_cpu ? job.min_memory_cpu_mb() : job.min_memory_node_mb()));
  // Recorded so: with memory by GPU there is none by node.
  if (!job.mem_per_tres().empty() && !by_cpu && !job.has_min_memory_node_mb()) memory.clear();
  out.line(fmt::format("MinCPUsNode={}{} MinTmpDiskNode={}", job.min_cpus_node(), memory,
                       text::format_mb(job.min_tmp_mb())));
}

void add_files(Record& out, const wire::JobInfo& job) {
  out.line(fmt::format("Command={}", or_null(job.command())));
  out.line(fmt::format("SubmitLine={}", or_null(job.submit_line())));
  out.line(fmt::format("WorkDir={}", or_null(job.work_dir())));
  if (job.has_gpu_idle_seconds()) {
    out.line(fmt::format("GpuIdleTimeout={}", seconds_text(job.gpu_idle_seconds())));
  }
  for (const wire::GpuUse& use : job.gpu_use()) {
    if (use.trouble().empty()) continue;
    out.line(fmt::format("GPUTrouble={}:{} {}", use.node(), use.index(), use.trouble()));
  }
  out.maybe("AdminComment", job.admin_comment());
  out.maybe("Comment", job.comment());
  out.maybe("Extra", job.extra());
  if (job.batch()) {
    out.line(fmt::format("StdErr={}", job.std_err()));
    out.line(fmt::format("StdIn={}", job.std_in().empty() ? "/dev/null" : job.std_in()));
    out.line(fmt::format("StdOut={}", job.std_out()));
  }
  if (job.switches() != 0) {
    out.line(fmt::format("Switches={}@{}", job.switches(), seconds_text(job.switch_wait())));
  }
  out.maybe("CpusPerTres", job.cpus_per_tres());
  out.maybe("MemPerTres", job.mem_per_tres());
  out.maybe("TresBind", job.tres_bind());
  out.maybe("TresPerJob", job.tres_per_job());
  out.maybe("TresPerNode", job.tres_per_node());
  out.maybe("TresPerSocket", job.tres_per_socket());
  out.maybe("TresPerTask", job.tres_per_task());
  if (!job.mail_type().empty()) {
    out.line(fmt::format("MailUser={} MailType={}",
                         job.mail_user().empty() ? job.user() : job.mail_user(), job.mail_type()));
  }
  out.maybe("NtasksPerTRES", job.ntasks_per_tres());
  if (job.segment_size() != 0) out.line(fmt::format("SegmentSize={}", job.segment_size()));
}

}  // namespace

std::string job_text(const wire::JobInfo& job, const Style& style) {
  Record out(style);
  out.line(first_line(job));
  // Recorded so: the id that is unique across clusters shows with details only.
  if (style.detail) out.maybe("SLUID", job.sluid());
  out.maybe("HetJobIdSet", job.het_set());
  out.line(fmt::format("UserId={}({}) GroupId={}({}) MCS_label=N/A", job.user(), job.uid(),
                       job.group(), job.gid()));
  out.line(fmt::format("Priority={} Nice={} Account={} QOS={}{}", job.priority(), job.nice(),
                       or_null(job.account()), or_null(job.qos()),
                       job.wckey().empty() ? "" : " WCKey=" + job.wckey()));
  // One word, so that the line can be taken apart at blanks.
  std::string reason = job.reason().empty() ? "None" : job.reason();
  std::ranges::replace(reason, ' ', '_');
  out.line(fmt::format("JobState={} Reason={}{} Dependency={}", state_word(job), reason,
                       job.failed_node().empty() ? "" : " FailedNode=" + job.failed_node(),
                       or_null(job.dependency())));
  out.line(fmt::format("Requeue={} Restarts={} BatchFlag={} Reboot={} ExitCode={}",
                       job.requeue() ? 1 : 0, job.restarts(), job.batch() ? 1 : 0,
                       job.reboot() ? 1 : 0, exit_text(job.exit_status())));
  if (style.detail) {
    out.line(fmt::format("DerivedExitCode={}", exit_text(job.derived_exit_status())));
  }
  add_times(out, job, style);
  out.line(fmt::format("Partition={} AllocNode:Sid={}:{}", job.partition(), job.alloc_node(),
                       job.alloc_sid()));
  out.line(fmt::format("ReqNodeList={} ExcNodeList={}", or_null(job.req_nodes()),
                       or_null(job.exc_nodes())));
  out.line(fmt::format("NodeList={}", job.nodes()));
  if (job.nodes().empty()) out.maybe("SchedNodeList", job.sched_nodes());
  out.maybe("BatchHost", job.batch_host());
  add_size(out, job, style);
  out.line(fmt::format("Features={} DelayBoot=00:00:00", or_null(job.features())));
  out.maybe("Prefer", job.prefer());
  out.maybe("BatchFeatures", job.batch_features());
  out.maybe("Reservation", job.reservation());
  out.line(fmt::format(
      "OverSubscribe={} Exclusive={} Contiguous={} Licenses={} LicensesAlloc={} Network=(null)",
      job.over_subscribe().empty() ? "NO" : job.over_subscribe(),
      job.exclusive().empty() ? "NO" : job.exclusive(), job.contiguous() ? 1 : 0,
      or_null(job.licenses()), or_null(job.licenses_taken())));
  add_files(out, job);
  return std::move(out).done();
}

std::string step_name(const wire::StepInfo& step) {
  std::string job = std::to_string(step.job_id());
  if (step.has_array_job_id() && step.has_array_task_id()) {
    job = fmt::format("{}_{}", step.array_job_id(), step.array_task_id());
  }
  switch (step.step_id()) {
    case wire::kBatchStep:
      return job + ".batch";
    case wire::kExternStep:
      return job + ".extern";
    case wire::kInteractiveStep:
      return job + ".interactive";
    default:
      return fmt::format("{}.{}", job, step.step_id());
  }
}

std::string step_text(const wire::StepInfo& step, const Style& style) {
  Record out(style);
  out.line(fmt::format(
      "StepId={} UserId={} StartTime={} TimeLimit={}", step_name(step), step.uid(),
      time_text(step.start_time(), style),
      text::format_minutes(step.has_time_limit_minutes() ? std::optional(step.time_limit_minutes())
                                                         : std::nullopt)));
  out.line(fmt::format("State={} Partition={} NodeList={}", step.state(), or_null(step.partition()),
                       or_null(step.nodes())));
  // A script takes nothing from the steps of its job: recorded as no CPUs.
  const std::uint32_t cpus = step.step_id() == wire::kBatchStep ? 0 : step.cpus();
  out.line(fmt::format("Nodes={} CPUs={} Tasks={} Name={} Network=(null)", step.node_count(), cpus,
                       step.tasks(), or_null(step.name())));
  out.line(fmt::format("TRES={}", or_null(step.tres())));
  out.line("ResvPorts=(null)");
  out.line("CPUFreqReq=Default");
  out.line(fmt::format("SrunHost:Pid={}:{}", or_null(step.host()), step.pid()));
  out.maybe("TresPerNode", step.tres_per_node());
  return std::move(out).done();
}

}  // namespace berth::command::scontrol
