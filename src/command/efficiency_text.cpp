#include "command/efficiency_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/bits.h"
#include "base/printable.h"
#include "command/gpu_use_text.h"
#include "command/show_text.h"
#include "text/words.h"

namespace berth::command {
namespace {

/// Fewer looks than this say little.
constexpr std::uint32_t kEnoughRounds = 10;

std::string memory_words(std::uint64_t mb) {
  return mb < 1024 ? fmt::format("{}M", mb)
                   : fmt::format("{:.1f}G", static_cast<double>(mb) / 1024);
}

std::string clock(std::int64_t seconds) {
  std::string out;
  append_clock(out, seconds);
  return out;
}

std::string allocated_memory(const std::string& tres) {
  for (const std::string_view part : text::split(tres, ',')) {
    if (part.starts_with("mem=")) return std::string(part.substr(4));
  }
  return {};
}

std::string gpus_words(const Bits& gpus, const std::string& node) {
  return fmt::format("GPU{} {} of {}", gpus.count() == 1 ? "" : "s", gpus.ranges(), node);
}

/// Several tasks on one GPU while others have nothing to do is how most scripts go wrong.
void find_hints(Efficiency& out) {
  struct OnNode {
    Bits idle;     // nothing was ever computed there
    Bits crowded;  // several processes are on it
    std::uint32_t processes = 0;
    std::uint32_t rounds = ~0U;
  };
  std::map<std::string, OnNode> nodes;
  for (const wire::GpuUse& use : out.gpus) {
    if (!use.trouble().empty()) {
      out.hints.push_back(
          fmt::format("GPU {} of {} went out of service while the job had it: what "
                      "was computed there is to be checked",
                      use.index(), use.node()));
      continue;
    }
    OnNode& node = nodes[use.node()];
    node.rounds = std::min(node.rounds, use.rounds());
    if (use.busy_sum() == 0 && use.processes_now() == 0) node.idle.set(use.index());
    // On one that is shared there may be others'.
    if (use.processes_now() > 1 && use.memory_given_mb() == 0) {
      node.crowded.set(use.index());
      node.processes += use.processes_now();
    }
  }
  for (const auto& [name, node] : nodes) {
    if (!node.idle.any() || node.rounds < kEnoughRounds) continue;
    if (node.crowded.any()) {
      out.hints.push_back(fmt::format(
          "{} processes use {}, {} idle: --gpus-per-task=1 with srun, or berth bind with mpirun, "
          "gives each task its own",
          node.processes, gpus_words(node.crowded, name),
          node.idle.count() == 1 ? fmt::format("GPU {} is", node.idle.ranges())
                                 : fmt::format("GPUs {} are", node.idle.ranges())));
    } else {
      out.hints.push_back(fmt::format(
          "{} {} never busy: ask for fewer, or see with `berth explain` which task gets which",
          gpus_words(node.idle, name), node.idle.count() == 1 ? "was" : "were"));
    }
  }
}

std::string gpu_line(const Efficiency& job, const wire::GpuUse& use) {
  std::string out = fmt::format("{}:{}", use.node(), use.index());
  if (!use.type().empty()) out += fmt::format(" {}", printable(use.type()));
  out += fmt::format("  busy {:.0f} % (most {} %)  memory {}", mean_busy(use), use.busy_most(),
                     memory_words(use.memory_most_mb()));
  const bool shared = use.memory_given_mb() > 0;
  if (const std::uint64_t all = shared ? use.memory_given_mb() : use.memory_mb(); all > 0) {
    out +=
        fmt::format(" of {}{} ({:.0f} %)", memory_words(all), shared ? " given" : "",
                    100.0 * static_cast<double>(use.memory_most_mb()) / static_cast<double>(all));
  }
  if (use.energy_mj() > 0) {
    constexpr double kMillijoulesOfWh = 3.6e6;
    out +=
        fmt::format("  energy {:.1f} Wh", static_cast<double>(use.energy_mj()) / kMillijoulesOfWh);
  }
  if (job.runs) {
    out += fmt::format("  now {} %, {}", use.busy_now(), memory_words(use.memory_now_mb()));
    if (use.idle_rounds() >= kEnoughRounds) {
      out += fmt::format(", idle for {}", clock(use.idle_rounds()));
    }
  }
  if (!use.trouble().empty()) out += fmt::format("  out of service: {}", printable(use.trouble()));
  return out;
}

}  // namespace

Efficiency efficiency_of(const wire::HistoryJob& job, const wire::JobInfo* live, std::int64_t now) {
  const wire::JobInfo& info = live == nullptr ? job.job() : *live;
  Efficiency out;
  out.job = info.has_array_task_id()
                ? fmt::format("{}_{}", info.array_job_id(), info.array_task_id())
            : info.has_het_job_id() ? fmt::format("{}+{}", info.het_job_id(), info.het_offset())
                                    : std::to_string(info.id());
  out.name = info.name();
  out.user = info.user();
  out.state = info.state();
  out.nodes = info.nodes();
  out.runs = info.state() == "RUNNING" || info.state() == "SUSPENDED";
  out.cpus = info.cpus();
  const std::int64_t end = out.runs || info.end_time() == 0 ? now : info.end_time();
  if (info.start_time() > 0 && info.start_time() <= end && info.state() != "PENDING") {
    out.seconds = end - info.start_time();
  }
  std::uint64_t used = 0;
  for (const wire::HistoryStep& step : job.steps()) {
    used += step.user_microseconds() + step.system_microseconds();
    out.task_memory_most_kb = std::max(out.task_memory_most_kb, step.max_rss_kb());
  }
  out.cpu_seconds = static_cast<double>(used) / 1e6;
  const double had = static_cast<double>(out.seconds) * out.cpus;
  if (had > 0 && !out.runs) out.cpu_percent = 100 * out.cpu_seconds / had;
  out.memory = allocated_memory(info.alloc_tres());
  out.gpus.assign(info.gpu_use().begin(), info.gpu_use().end());
  std::ranges::sort(out.gpus, [](const wire::GpuUse& a, const wire::GpuUse& b) {
    return a.node() != b.node() ? a.node() < b.node() : a.index() < b.index();
  });
  find_hints(out);
  return out;
}

std::string efficiency_text(const Efficiency& job) {
  std::string out =
      fmt::format("job {}  {} of {}  {}, {}{}\n", job.job, printable(job.name), job.user, job.state,
                  clock(job.seconds), job.nodes.empty() ? "" : " on " + job.nodes);
  if (job.cpu_percent) {
    out += fmt::format("  CPUs      {} for {}: {:.2f} CPU seconds used, {:.1f} %\n", job.cpus,
                       clock(job.seconds), job.cpu_seconds, *job.cpu_percent);
  } else {
    // Steps tell what they used when they end.
    out += fmt::format("  CPUs      {}", job.cpus);
    if (job.cpu_seconds > 0) {
      out += fmt::format("; {:.2f} CPU seconds used by steps that have ended", job.cpu_seconds);
    }
    out += '\n';
  }
  out += fmt::format("  memory    {}", job.memory.empty() ? "not limited" : job.memory);
  if (job.task_memory_most_kb > 0) {
    out += fmt::format("; the largest task had {}", memory_words(job.task_memory_most_kb / 1024));
  }
  out += '\n';
  bool first = true;
  for (const wire::GpuUse& use : job.gpus) {
    out += fmt::format("  {:<9} {}\n", first ? "GPUs" : "", gpu_line(job, use));
    first = false;
  }
  for (const std::string& hint : job.hints) out += fmt::format("  hint      {}\n", hint);
  return out;
}

void append_efficiency_json(JsonText& json, const Efficiency& job) {
  json.begin_object();
  json.text("job", job.job);
  json.text("name", job.name);
  json.text("user", job.user);
  json.text("state", job.state);
  json.text("nodes", job.nodes);
  json.number("seconds", job.seconds);
  json.unsigned_number("cpus", job.cpus);
  json.unsigned_number("cpu_milliseconds", static_cast<std::uint64_t>(job.cpu_seconds * 1000));
  if (job.cpu_percent) json.real("cpu_percent", *job.cpu_percent);
  json.unsigned_number("task_memory_most_kb", job.task_memory_most_kb);
  json.text("memory", job.memory);
  json.begin_array("gpus");
  for (const wire::GpuUse& use : job.gpus) {
    json.begin_object();
    json.text("node", use.node());
    json.unsigned_number("index", use.index());
    json.text("type", use.type());
    json.unsigned_number("rounds", use.rounds());
    json.real("busy_percent", mean_busy(use));
    json.unsigned_number("busy_percent_most", use.busy_most());
    json.unsigned_number("memory_most_mb", use.memory_most_mb());
    json.unsigned_number("memory_mb", use.memory_mb());
    if (use.memory_given_mb() > 0) json.unsigned_number("memory_given_mb", use.memory_given_mb());
    json.real("energy_joules", static_cast<double>(use.energy_mj()) / 1000);
    if (job.runs) {
      json.unsigned_number("busy_percent_now", use.busy_now());
      json.unsigned_number("memory_now_mb", use.memory_now_mb());
      json.unsigned_number("power_now_mw", use.power_now_mw());
      json.unsigned_number("idle_seconds", use.idle_rounds());
      json.unsigned_number("processes_now", use.processes_now());
    }
    if (!use.trouble().empty()) json.text("trouble", use.trouble());
    json.end_object();
  }
  json.end_array();
  json.words("hints", job.hints);
  json.end_object();
}

}  // namespace berth::command
