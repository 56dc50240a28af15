#include "simulate/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace berth::simulate {
namespace {

constexpr std::size_t kLabel = 30;
constexpr std::size_t kColumn = 16;

/// One character a column of time from 0 to `until`, so that two runs stand below each other.
std::string sparkline(const Outcome& run, double Point::* value, double top, std::int64_t until) {
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::int64_t kColumns = 60;
  std::string out;
  for (std::int64_t c = 0; c < kColumns; ++c) {
    // Points whose stretch begins in this column; where there is none, the one that goes on.
    const std::int64_t from = c * until / kColumns / run.width;
    const std::int64_t to = std::max(from + 1, (c + 1) * until / kColumns / run.width);
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t i = from; i < to && i < std::ssize(run.points); ++i, ++count) {
      sum += run.points[static_cast<std::size_t>(i)].*value;
    }
    if (count == 0) break;
    const double part = top > 0 ? sum / static_cast<double>(count) / top : 0;
    out += kBlocks[static_cast<std::size_t>(std::clamp(part * 8, 0.0, 7.0))];
  }
  return out;
}

void add_lines(std::string& out, const std::vector<std::string>& lines, std::uint64_t all) {
  for (const std::string& line : lines) out += fmt::format("  {}\n", line);
  if (all > lines.size() && !lines.empty()) {
    out += fmt::format("  and {} more\n", all - lines.size());
  }
}

void add_over_time(std::string& out, const Report& report, std::string_view title,
                   double Point::* value, bool part) {
  double top = part ? 1 : 0;
  std::int64_t until = 1;
  for (const Outcome& run : report.runs) {
    until = std::max(until, run.makespan);
    for (const Point& point : run.points) top = std::max(top, point.*value);
  }
  out += fmt::format("\n{} over time, top {}\n", title,
                     part ? shown(top, Unit::percent) : shown(top, Unit::count));
  for (const Outcome& run : report.runs) {
    if (report.runs.size() > 1) out += fmt::format("  {}\n", run.label);
    out += fmt::format("  {}\n", sparkline(run, value, top, until));
  }
}

void add_sizes(std::string& out, const Outcome& run, bool named) {
  out += fmt::format(
      "\nwaits by GPUs asked for{}\n  {:>6} {:>9} {:>12} {:>12} {:>12} {:>12} {:>10}\n",
      named ? ", " + run.label : "", "GPUs", "jobs", "mean", "median", "p95", "max", "slowdown");
  for (const SizeClass& size : run.sizes) {
    out += fmt::format("  {:>6} {:>9} {:>12} {:>12} {:>12} {:>12} {:>10}\n", size.label,
                       size.wait.count, shown_seconds(size.wait.mean),
                       shown_seconds(size.wait.median), shown_seconds(size.wait.p95),
                       shown_seconds(size.wait.max), shown(size.slowdown.mean, Unit::ratio));
  }
}

}  // namespace

std::string shown_seconds(double seconds) {
  const auto all = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t days = all / 86400;
  const std::string clock =
      fmt::format("{:02}:{:02}:{:02}", all / 3600 % 24, all / 60 % 60, all % 60);
  return days > 0 ? fmt::format("{}-{}", days, clock) : clock;
}

std::string shown(double value, Unit unit) {
  switch (unit) {
    case Unit::count:
      return value == std::floor(value) ? fmt::format("{:.0f}", value)
                                        : fmt::format("{:.1f}", value);
    case Unit::percent:
      return fmt::format("{:.2f} %", value * 100);
    case Unit::duration:
      return shown_seconds(value);
    case Unit::ratio:
      return fmt::format("{:.2f}", value);
  }
  return {};
}

std::string shown_difference(double from, double to, Unit unit) {
  const double by = to - from;
  const std::string size = shown(std::fabs(by), unit);
  if (size == shown(0, unit)) return "";
  return (by < 0 ? "-" : "+") + size;
}

std::vector<Row> rows_of(const Report& report) {
  std::vector<Row> rows;
  const auto add = [&](std::string_view label, Unit unit, auto&& value) {
    Row row{label, unit, {}};
    for (const Outcome& run : report.runs) row.values.push_back(static_cast<double>(value(run)));
    rows.push_back(std::move(row));
  };
  add("jobs started", Unit::count, [](const Outcome& o) { return o.started; });
  add("  by backfill", Unit::count, [](const Outcome& o) { return o.backfilled; });
  add("  ended by their limit", Unit::count, [](const Outcome& o) { return o.timed_out; });
  add("  preempted", Unit::count, [](const Outcome& o) { return o.preemptions; });
  add("  started again", Unit::count, [](const Outcome& o) { return o.restarts; });
  add("jobs refused", Unit::count, [](const Outcome& o) { return o.refused; });
  add("jobs that never started", Unit::count, [](const Outcome& o) { return o.never_started; });
  add("makespan", Unit::duration, [](const Outcome& o) { return o.makespan; });
  add("GPUs allocated", Unit::percent, [](const Outcome& o) { return o.gpu; });
  add("  while jobs arrive", Unit::percent, [](const Outcome& o) { return o.gpu_arrivals; });
  add("CPUs allocated", Unit::percent, [](const Outcome& o) { return o.cpu; });
  add("  while jobs arrive", Unit::percent, [](const Outcome& o) { return o.cpu_arrivals; });
  add("free GPUs of no use, of all", Unit::percent, [](const Outcome& o) { return o.stranded; });
  add("  of the free ones", Unit::percent, [](const Outcome& o) { return o.stranded_of_free; });
  add("wait, mean", Unit::duration, [](const Outcome& o) { return o.wait.mean; });
  add("  median", Unit::duration, [](const Outcome& o) { return o.wait.median; });
  add("  95 %", Unit::duration, [](const Outcome& o) { return o.wait.p95; });
  add("  longest", Unit::duration, [](const Outcome& o) { return o.wait.max; });
  add("bounded slowdown, mean", Unit::ratio, [](const Outcome& o) { return o.slowdown.mean; });
  add("  median", Unit::ratio, [](const Outcome& o) { return o.slowdown.median; });
  add("  95 %", Unit::ratio, [](const Outcome& o) { return o.slowdown.p95; });
  add("jobs waiting, mean", Unit::count, [](const Outcome& o) { return o.waiting; });
  add("  most", Unit::count, [](const Outcome& o) { return o.most_waiting; });
  return rows;
}

std::string render_text(const Report& report) {
  std::string out = fmt::format("trace    {} ({}): {} lines, {} of them not used\n", report.trace,
                                report.format, report.lines, report.skipped);
  add_lines(out, report.skipped_first, report.skipped);
  for (const std::string& note : report.notes) out += fmt::format("  note: {}\n", note);
  for (const Outcome& run : report.runs) {
    out += fmt::format("cluster  {}: {} nodes, {} CPUs, {} GPUs\n", run.label, run.nodes, run.cpus,
                       run.gpus);
    for (const std::string& note : run.notes) out += fmt::format("  note: {}\n", note);
    add_lines(out, run.refused_first, run.refused);
    for (const auto& [reason, jobs] : run.never_reasons) {
      out += fmt::format("  never started: {} jobs ({})\n", jobs, reason);
    }
  }
  const bool two = report.runs.size() == 2;
  out += '\n';
  if (two) {
    // A label may be a path: its end says more than its beginning.
    const auto cut = [](const std::string& label) {
      return label.size() < kColumn ? label : "…" + label.substr(label.size() - kColumn + 2);
    };
    const auto pad = [&](const std::string& label) {
      const std::size_t width = cut(label).size() - (label.size() < kColumn ? 0 : 2);
      return std::string(kColumn > width ? kColumn - width : 0, ' ') + cut(label);
    };
    out += fmt::format("{:<{}}{}{}{:>{}}\n", "", kLabel, pad(report.runs[0].label),
                       pad(report.runs[1].label), "difference", kColumn);
  }
  for (const Row& row : rows_of(report)) {
    std::string line = fmt::format("{:<{}}", row.label, kLabel);
    for (const double value : row.values) {
      line += fmt::format("{:>{}}", shown(value, row.unit), kColumn);
    }
    if (two) {
      line +=
          fmt::format("{:>{}}", shown_difference(row.values[0], row.values[1], row.unit), kColumn);
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + '\n';
  }
  for (const Outcome& run : report.runs) add_sizes(out, run, two);
  if (std::ranges::any_of(report.runs, [](const Outcome& run) { return run.gpus > 0; })) {
    add_over_time(out, report, "GPUs allocated", &Point::gpu, true);
  }
  add_over_time(out, report, "CPUs allocated", &Point::cpu, true);
  add_over_time(out, report, "jobs waiting", &Point::waiting, false);
  return out;
}

}  // namespace berth::simulate
