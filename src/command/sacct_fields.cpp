#include "command/sacct_fields.h"
#include "command/gpu_use_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "command/gpu_use_text.h"
#include "command/show_states.h"
#include "command/squeue_fields.h"
#include "command/usage_text.h"
#include "text/hostlist.h"
#include "text/words.h"
#include "wire/step_ids.h"

namespace berth::command {
namespace {

using Row = HistoryRow;
using Out = std::string;
using Job = wire::JobInfo;

const Job& job_of(const Row& row) {
  return row.job->job();
}

bool started(const Job& job) {
  return job.state() != "PENDING" && job.start_time() != 0;
}

std::int64_t cut(std::int64_t time, const SacctShown& shown) {
  if (time == 0 || (shown.from == 0 && shown.until == 0)) return time;
  return std::clamp(time, shown.from, shown.until);
}

std::int64_t start_of(const Row& row, const SacctShown& shown) {
  if (row.step != nullptr) return cut(row.step->step().start_time(), shown);
  return started(job_of(row)) ? cut(job_of(row).start_time(), shown) : 0;
}

std::int64_t end_of(const Row& row, const SacctShown& shown) {
  if (row.step != nullptr) return cut(row.step->end_time(), shown);
  return has_ended(job_of(row)) ? cut(job_of(row).end_time(), shown) : 0;
}

std::int64_t elapsed(const Row& row, const SacctShown& shown) {
  const std::int64_t start = start_of(row, shown);
  if (start == 0) return 0;
  if (row.step == nullptr && shown.from == 0) return run_seconds_of(job_of(row), shown.shown.now);
  const std::int64_t end = end_of(row, shown);
  return std::max<std::int64_t>(0, (end != 0 ? end : shown.shown.now) - start);
}

std::uint32_t cpus(const Row& row) {
  if (row.step != nullptr) {
    // The batch step shows what the job has on its node; recorded steps know their own.
    const std::uint32_t own = row.step->step().cpus();
    return own != 0 ? own : job_of(row).cpus() / std::max(1U, job_of(row).node_count());
  }
  return started(job_of(row)) ? job_of(row).cpus() : 0;
}

void append_id(Out& out, const Row& row, const SacctShown& shown) {
  if (row.step == nullptr) {
    append_job_id(out, job_of(row), shown.shown);
    return;
  }
  if (job_of(row).has_het_job_id()) {
    append_job_id(out, job_of(row), shown.shown);
    std::string text;
    append_step_id(text, row.step->step());
    out += text.substr(text.find('.'));
    return;
  }
  append_step_id(out, row.step->step());
}

void append_raw_id(Out& out, const Row& row) {
  append_unsigned(out, job_of(row).id());
  if (row.step == nullptr) return;
  std::string text;
  append_step_id(text, row.step->step());
  out += text.substr(text.find('.'));
}

void append_state(Out& out, const Row& row) {
  if (row.step != nullptr) {
    append_or(out, row.step->state(), "RUNNING");
    return;
  }
  out += has_ended(job_of(row)) ? std::string_view(job_of(row).state())
                                : shown_state(job_of(row)).name;
  if (job_of(row).state() == "CANCELLED" && row.job->cancelled()) {
    out += " by ";
    append_unsigned(out, row.job->ended_by());
  }
}

/// "00:00.123", "01:02:03", "1-00:00:00".
void append_cpu_time(Out& out, std::uint64_t microseconds) {
  const std::uint64_t whole = microseconds / 1'000'000;
  if (whole >= 3600) {
    append_clock(out, static_cast<std::int64_t>(whole));
    return;
  }
  fmt::format_to(std::back_inserter(out), "{:02}:{:02}.{:03}", whole / 60, whole % 60,
                 microseconds / 1000 % 1000);
}

struct CpuTime {
  std::uint64_t user = 0;
  std::uint64_t system = 0;
};
CpuTime cpu_time(const Row& row) {
  CpuTime time;
  const auto add = [&](const wire::HistoryStep& step) {
    time.user += step.user_microseconds();
    time.system += step.system_microseconds();
  };
  if (row.step != nullptr) {
    add(*row.step);
  } else {
    for (const wire::HistoryStep& step : row.job->steps()) add(step);
  }
  return time;
}

/// A number of KiB in the unit asked for.
void append_size(Out& out, std::uint64_t kb, const SacctShown& shown) {
  if (shown.unit == 0) {
    append_unsigned(out, kb);
    if (kb != 0) out += 'K';
    return;
  }
  append_bytes(out, kb * 1024, {.convert = true, .unit = shown.unit});
}

/// "mem=8G" of a TRES text, in KiB.
std::optional<std::uint64_t> memory_kb(std::string_view tres) {
  for (const std::string_view part : text::split(tres, ',')) {
    if (!part.starts_with("mem=")) continue;
    std::uint64_t value = 0;
    std::size_t at = 4;
    for (; at < part.size() && part[at] >= '0' && part[at] <= '9'; ++at) {
      value = value * 10 + static_cast<std::uint64_t>(part[at] - '0');
    }
    const char unit = at < part.size() ? part[at] : 'M';
    std::uint64_t factor = 1;
    for (const char known : std::string_view("KMGTPE")) {
      if (known == unit) break;
      factor *= 1024;
    }
    return value * factor;
  }
  return std::nullopt;
}

void append_required_memory(Out& out, const Row& row, const SacctShown& shown) {
  const std::optional<std::uint64_t> kb = memory_kb(job_of(row).req_tres());
  if (!kb) return;
  if (shown.unit != 0) {
    append_size(out, *kb, shown);
  } else {
    append_memory(out, *kb / 1024, shown.shown.convert);
  }
}

std::uint64_t per_task(std::uint64_t sum, const wire::HistoryStep& step) {
  return sum / std::max(1U, step.step().tasks());
}

void append_limit(Out& out, const Job& job) {
  if (job.has_time_limit_minutes()) {
    append_clock(out, std::int64_t{job.time_limit_minutes()} * 60);
  } else {
    out += "UNLIMITED";
  }
}

void append_nodes(Out& out, const Row& row) {
  append_or(out, row.step != nullptr ? row.step->step().nodes() : job_of(row).nodes(),
            "None assigned");
}

std::uint32_t node_count(const Row& row) {
  return row.step != nullptr ? row.step->step().node_count() : job_of(row).node_count();
}

std::string_view allocated_tres(const Row& row) {
  return row.step != nullptr ? row.step->step().tres() : job_of(row).alloc_tres();
}

/// What the tasks of a step used is known when it has ended; sstat tells of those that run.
bool use_known(const wire::HistoryStep& step) {
  return step.end_time() != 0;
}

/// What the tasks of a step used. Of one whose node was lost nothing is known; one that was
/// recorded by an earlier version has sums alone.
wire::StepFigures figures_of(const wire::HistoryStep& step) {
  wire::StepFigures out = step.figures();
  const std::uint32_t tasks = std::max(1U, step.step().tasks());
  if (out.cpu().tasks() == 0) {
    out.mutable_memory()->set_tasks(tasks);
    out.mutable_memory()->set_total(step.total_rss_kb() * 1024);
    out.mutable_memory()->set_most(step.max_rss_kb() * 1024);
    out.mutable_memory()->set_most_rank(step.max_rss_rank());
  }
  // With that of processes that were nobody's children any more.
  out.mutable_cpu()->set_tasks(tasks);
  out.mutable_cpu()->set_total(step.user_microseconds() + step.system_microseconds());
  if (step.figures().cpu().tasks() == 0) out.mutable_cpu()->set_most(out.cpu().total());
  return out;
}

/// Calls show(StepUsed, style) for a step.
template <class Show>
void with_usage(const Row& row, const SacctShown& shown, Show&& show) {
  if (row.step == nullptr || !use_known(*row.step)) return;
  const wire::StepFigures figures = figures_of(*row.step);
  const bool known = row.step->figures().cpu().tasks() > 0;
  show(StepUsed{.figures = figures, .nodes = row.step->step().nodes(), .tasks_known = known},
       UsageStyle{.convert = shown.shown.convert, .unit = shown.unit});
}

void append_usage(Out& out, const Row& row, const SacctShown& shown, Quantity what, Part part) {
  with_usage(row, shown, [&](const StepUsed& used, const UsageStyle& style) {
    append_used(out, used, what, part, style);
  });
}

void append_usage_in(Out& out, const Row& row, const SacctShown& shown, Part part) {
  with_usage(row, shown, [&](const StepUsed& used, const UsageStyle& style) {
    append_used_in(out, used, part, style);
  });
}

void append_usage_out(Out& out, const Row& row, const SacctShown& shown, Part part) {
  with_usage(row, shown, [&](const StepUsed& used, const UsageStyle& style) {
    append_used_out(out, used, part, style);
  });
}

std::int64_t planned_seconds(const Row& row, const SacctShown& shown) {
  const Job& job = job_of(row);
  const std::int64_t since = job.eligible_time() != 0 ? job.eligible_time() : job.submit_time();
  const std::int64_t until = started(job)     ? job.start_time()
                             : has_ended(job) ? job.end_time()
                                              : shown.shown.now;
  return std::max<std::int64_t>(0, until - since);
}

std::string_view pick(const SacctShown& shown, const std::string& asked, const std::string& whole) {
  return shown.shown.expand_patterns || asked.empty() ? std::string_view(whole)
                                                      : std::string_view(asked);
}

#define SHOW(...)                                                                           \
  [](const Row& row, [[maybe_unused]] const SacctShown& shown, [[maybe_unused]] Out& out) { \
    [[maybe_unused]] const Job& j = job_of(row);                                            \
    __VA_ARGS__;                                                                            \
  }
// Of the job alone; steps show nothing.
#define JOB(...) SHOW(if (row.step == nullptr) { __VA_ARGS__; })
// Of steps alone; jobs show nothing.
#define STEP(...)                           \
  SHOW(if (row.step != nullptr) {           \
    const wire::HistoryStep& s = *row.step; \
    __VA_ARGS__;                            \
  })
#define NOTHING SHOW((void)row)
#define USED(what, part) SHOW(append_usage(out, row, shown, Quantity::what, Part::part))
#define IN(part) SHOW(append_usage_in(out, row, shown, Part::part))
#define OUT(part) SHOW(append_usage_out(out, row, shown, Part::part))
#define WHEN(expression) SHOW(append_time(out, expression, shown.shown, "Unknown"))

constexpr SacctField kSacctFields[] = {
    {"Account", 10, SHOW(out += j.account())},
    {"AdminComment", 19, JOB(out += j.admin_comment())},
    {"AllocCPUS", 10, SHOW(append_unsigned(out, cpus(row)))},
    {"AllocGRES", 12, JOB(out += j.gres_detail())},
    {"AllocNodes", 10,
     SHOW(append_unsigned(out, row.step != nullptr || started(j) ? node_count(row) : 0))},
    {"AllocTRES", 10, SHOW(out += allocated_tres(row))},
    {"AssocID", 7, JOB(out += '0')},
    {"AveCPU", 10, USED(cpu, average)},
    {"AveCPUFreq", 10, NOTHING},
    {"AveDiskRead", 14, USED(read, average)},
    {"AveDiskWrite", 14, USED(written, average)},
    {"AvePages", 10, USED(pages, average)},
    {"AveRSS", 10, STEP(if (use_known(s)) append_size(out, per_task(s.total_rss_kb(), s), shown))},
    {"AveVMSize", 10, NOTHING},
    {"BlockID", 16, NOTHING},
    {"Cluster", 10, SHOW(out += shown.shown.cluster)},
    {"Comment", 14, JOB(out += j.comment())},
    {"Constraints", 19, JOB(out += j.features())},
    {"ConsumedEnergy", 14, STEP(append_joules(out, joules_of(s.figures()), shown.shown.convert))},
    {"ConsumedEnergyRaw", 17, STEP(append_joules(out, joules_of(s.figures()), false))},
    {"Container", 20, NOTHING},
    {"CPUTime", 10, SHOW(append_clock(out, elapsed(row, shown) * cpus(row)))},
    {"CPUTimeRAW", 10, SHOW(append_number(out, elapsed(row, shown) * cpus(row)))},
    {"DBIndex", 10, JOB(append_unsigned(out, j.id()))},
    {"DerivedExitCode", 15, JOB(append_exit(out, j.derived_exit_status()))},
    {"Elapsed", 10, SHOW(append_clock(out, elapsed(row, shown)))},
    {"ElapsedRaw", 10, SHOW(append_number(out, elapsed(row, shown)))},
    {"Eligible", 19, WHEN(j.eligible_time())},
    {"End", 19, WHEN(end_of(row, shown))},
    {"ExitCode", 8,
     SHOW(append_exit(out, row.step != nullptr ? row.step->exit_status() : j.exit_status()))},
    {"Extra", 14, JOB(out += j.extra())},
    {"FailedNode", 15, JOB(out += j.failed_node())},
    {"Flags", 24,
     JOB(if (started(j)) out += j.scheduler() == "Backfill" ? "SchedBackfill" : "SchedMain")},
    {"GID", 6, JOB(append_unsigned(out, j.gid()))},
    {"GpuBusy", 8, JOB(append_gpu_busy(out, j.gpu_use()))},  // berth's own, as the next three
    {"GpuEnergy", 10, JOB(append_gpu_energy(out, j.gpu_use(), shown.shown.convert))},
    {"GpuIdle", 10, JOB(append_gpu_idle(out, j.gpu_use()))},
    {"GpuMemory", 10, JOB(append_gpu_memory(out, j.gpu_use(), shown.shown.convert))},
    {"Group", 9, JOB(out += j.group())},
    {"JobID", -12, SHOW(append_id(out, row, shown))},
    {"JobIDRaw", -12, SHOW(append_raw_id(out, row))},
    {"JobName", 10, SHOW(out += row.step != nullptr ? row.step->step().name() : j.name())},
    {"Layout", 9, NOTHING},
    {"Licenses", 10, JOB(out += j.licenses())},
#include "command/most_used_fields.def"
    {"MaxRSS", 10, STEP(if (use_known(s)) append_size(out, s.max_rss_kb(), shown))},
    {"MaxRSSNode", 10,
     STEP(if (s.max_rss_kb() != 0) out +=
          s.step().node_count() == 1 ? s.step().nodes() : s.figures().memory().most_node())},
    {"MaxRSSTask", 10, STEP(if (use_known(s)) append_unsigned(out, s.max_rss_rank()))},
    {"MaxVMSize", 10, NOTHING},
    {"MaxVMSizeNode", 14, NOTHING},
    {"MaxVMSizeTask", 14, NOTHING},
    {"McsLabel", 10, NOTHING},
    {"MinCPU", 10, USED(cpu, least)},
    {"MinCPUNode", 10, USED(cpu, least_node)},
    {"MinCPUTask", 10, USED(cpu, least_task)},
    {"NCPUS", 10, SHOW(append_unsigned(out, cpus(row)))},
    {"NNodes", 8, SHOW(append_unsigned(out, node_count(row)))},
    {"NodeList", 15, SHOW(append_nodes(out, row))},
    {"NTasks", 8, STEP(append_unsigned(out, s.step().tasks()))},
    {"Partition", 10, JOB(out += j.partition())},
    {"PendingReasons", 22, JOB(out += j.pending_reasons())},
    {"Planned", 10, JOB(append_clock(out, planned_seconds(row, shown)))},
    {"PlannedCPU", 10, JOB(append_clock(out, planned_seconds(row, shown) * j.cpus()))},
    {"PlannedCPURAW", 13, JOB(append_number(out, planned_seconds(row, shown) * j.cpus()))},
    {"Priority", 10, JOB(append_unsigned(out, j.priority()))},
    {"QOS", 10, JOB(out += j.qos())},
    {"QOSRAW", 10, JOB(out += '0')},
    {"QOSREQ", 10, JOB(out += j.qos())},
    {"Reason", 22, JOB(out += j.reason())},
    {"ReqCPUFreq", 10, SHOW(out += "Unknown")},
    {"ReqCPUFreqGov", 13, SHOW(out += "Unknown")},
    {"ReqCPUFreqMax", 13, SHOW(out += "Unknown")},
    {"ReqCPUFreqMin", 13, SHOW(out += "Unknown")},
    {"ReqCPUS", 8, SHOW(append_unsigned(out, row.step != nullptr ? cpus(row) : j.cpus()))},
    {"ReqGRES", 12, JOB(out += j.tres_per_node())},
    {"ReqMem", 10, JOB(append_required_memory(out, row, shown))},
    {"ReqNodes", 8, JOB(append_unsigned(out, j.node_count()))},
    {"ReqTRES", 10, JOB(out += j.req_tres())},
    {"Reservation", 20, JOB(out += j.reservation())},
    {"ReservationId", 15, NOTHING},
    {"Reserved", 10, JOB(append_clock(out, planned_seconds(row, shown)))},
    {"Restarts", 8, JOB(append_unsigned(out, j.restarts()))},
    {"SLUID", 14, JOB(out += j.sluid())},
    {"Start", 19, WHEN(start_of(row, shown))},
    {"State", 10, SHOW(append_state(out, row))},
    {"StdErr", 20, JOB(out += pick(shown, j.std_err_asked(), j.std_err()))},
    {"StdIn", 20, JOB(out += pick(shown, j.std_in_asked(), j.std_in()))},
    {"StdOut", 20, JOB(out += pick(shown, j.std_out_asked(), j.std_out()))},
    {"Submit", 19, WHEN(row.step != nullptr ? row.step->step().start_time() : j.submit_time())},
    {"SubmitLine", 20,
     SHOW(out += row.step != nullptr ? row.step->step().submit_line() : j.submit_line())},
    {"Suspended", 10,
     JOB(append_clock(out, j.suspend_time() == 0
                               ? 0
                               : j.suspend_time() - j.start_time() - j.seconds_before_suspend()))},
    {"SystemComment", 14, NOTHING},
    {"SystemCPU", 10, SHOW(append_cpu_time(out, cpu_time(row).system))},
    {"Timelimit", 10, JOB(append_limit(out, j))},
    {"TimelimitRaw", 10,
     JOB(if (j.has_time_limit_minutes()) append_unsigned(out, j.time_limit_minutes());
         else out += "UNLIMITED")},
    {"TotalCPU", 10,
     SHOW(const CpuTime time = cpu_time(row); append_cpu_time(out, time.user + time.system))},
#include "command/tres_usage_fields.def"
    {"UID", 6, JOB(append_unsigned(out, j.uid()))},
    {"User", 9, JOB(out += j.user())},
    {"UserCPU", 10, SHOW(append_cpu_time(out, cpu_time(row).user))},
    {"WCKey", 10, JOB(out += j.wckey())},
    {"WCKeyID", 8, NOTHING},
    {"WorkDir", 20, JOB(out += j.work_dir())},
};

#undef SHOW
#undef JOB
#undef STEP
#undef NOTHING
#undef USED
#undef IN
#undef OUT
#undef WHEN

}  // namespace

std::span<const SacctField> sacct_fields() {
  return kSacctFields;
}

}  // namespace berth::command
