#include <fmt/format.h>

#include <algorithm>

#include "simulate/plot.h"
#include "simulate/render.h"

namespace berth::simulate {
namespace {

constexpr std::string_view kStyle = R"(
:root{--ink:#1d2330;--soft:#5c6675;--paper:#fbfbf9;--card:#fff;--line:#e3e6ea;--a:#0b6e99;--b:#d1660a;--good:#1a7f4b;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#9aa5b5;--paper:#14171c;--card:#1c2027;--line:#2f3640;--a:#5ab8e0;--b:#f2a154;--good:#5fd093;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;padding:2rem 1rem 4rem;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1360px;margin:0 auto}
h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}
p,li{color:var(--soft);margin:.15rem 0}ul{padding-left:1.2rem;margin:.3rem 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:.8rem;margin:1.4rem 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.8rem 1rem}
.card b{display:block;font-size:1.35rem;font-weight:600;font-variant-numeric:tabular-nums}
.card b+b{color:var(--b)}.card b:first-of-type{color:var(--a)}
.card span{color:var(--soft);font-size:.85rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:1rem}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.8rem 1rem}
figcaption{font-weight:600;margin-bottom:.3rem}
svg{width:100%;height:auto;display:block}
.grid{stroke:var(--line);stroke-width:1}.mark{fill:var(--soft);font-size:11px}.axis{fill:var(--soft);font-size:12px}
path{fill:none;stroke-width:1.8;stroke-linejoin:round}.line0{stroke:var(--a)}.line1{stroke:var(--b)}
.key{display:flex;gap:1.2rem;flex-wrap:wrap;font-size:.85rem;color:var(--soft)}
.key i{display:inline-block;width:1.1rem;height:.2rem;margin-right:.4rem;vertical-align:middle}
.key0{background:var(--a)}.key1{background:var(--b)}
.wide{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .9rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}td.sub{padding-left:2rem;color:var(--soft)}
tr:last-child td{border-bottom:0}th{color:var(--soft);font-weight:600;font-size:.85rem}
)";

Plot over_time(const Report& report, std::string title, std::string y_label, Axis axis,
               double Point::* value) {
  Plot plot{std::move(title),
            "time since the first submission",
            std::move(y_label),
            Axis::seconds,
            axis,
            true,
            {}};
  for (const Outcome& run : report.runs) {
    Line line{run.label, {}};
    for (const Point& point : run.points) {
      line.points.emplace_back(static_cast<double>(point.at), point.*value);
    }
    line.points.emplace_back(static_cast<double>(run.makespan), 0);  // all is over
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

Plot waits(const Report& report) {
  Plot plot{"How long jobs waited",
            "at most this long",
            "part of the jobs",
            Axis::log_seconds,
            Axis::percent,
            false,
            {}};
  for (const Outcome& run : report.runs) {
    Line line{run.label, {}};
    for (const auto& [seconds, part] : run.wait_curve) {
      line.points.emplace_back(static_cast<double>(seconds), part);
    }
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

void add_card(std::string& out, const Report& report, std::string_view label, Unit unit,
              double Outcome::* value) {
  out += "<div class=\"card\">";
  for (const Outcome& run : report.runs) out += fmt::format("<b>{}</b>", shown(run.*value, unit));
  out += fmt::format("<span>{}</span></div>", label);
}

void add_wait_card(std::string& out, const Report& report, std::string_view label,
                   double Spread::* value, Spread Outcome::* of, Unit unit) {
  out += "<div class=\"card\">";
  for (const Outcome& run : report.runs) {
    out += fmt::format("<b>{}</b>", shown(run.*of.*value, unit));
  }
  out += fmt::format("<span>{}</span></div>", label);
}

void add_table(std::string& out, const Report& report) {
  out += "<h2>All figures</h2><div class=\"wide\"><table><tr><th></th>";
  for (const Outcome& run : report.runs) out += fmt::format("<th>{}</th>", escaped(run.label));
  const bool two = report.runs.size() == 2;
  out += two ? "<th>difference</th></tr>" : "</tr>";
  for (const Row& row : rows_of(report)) {
    const bool sub = row.label.starts_with("  ");
    out += fmt::format("<tr><td{}>{}</td>", sub ? " class=\"sub\"" : "",
                       escaped(row.label.substr(sub ? 2 : 0)));
    for (const double value : row.values) out += fmt::format("<td>{}</td>", shown(value, row.unit));
    if (two) {
      out += fmt::format("<td>{}</td>", shown_difference(row.values[0], row.values[1], row.unit));
    }
    out += "</tr>";
  }
  out += "</table></div>\n";
}

void add_sizes(std::string& out, const Report& report) {
  out +=
      "<h2>Waits by GPUs asked for</h2><div class=\"wide\"><table><tr><th>configuration</th>"
      "<th>GPUs</th><th>jobs</th><th>mean</th><th>median</th><th>95 %</th><th>longest</th>"
      "<th>bounded slowdown</th></tr>";
  for (const Outcome& run : report.runs) {
    for (const SizeClass& size : run.sizes) {
      out += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td></tr>",
          escaped(run.label), size.label, size.wait.count, shown_seconds(size.wait.mean),
          shown_seconds(size.wait.median), shown_seconds(size.wait.p95),
          shown_seconds(size.wait.max), shown(size.slowdown.mean, Unit::ratio));
    }
  }
  out += "</table></div>\n";
}

void add_list(std::string& out, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) out += fmt::format("<li>{}</li>", escaped(line));
}

void add_notes(std::string& out, const Report& report) {
  std::string list;
  add_list(list, report.notes);
  if (report.skipped > 0) {
    list += fmt::format("<li>{} of {} lines could not be used, among them:</li>", report.skipped,
                        report.lines);
    add_list(list, report.skipped_first);
  }
  for (const Outcome& run : report.runs) {
    for (const std::string& note : run.notes) {
      list += fmt::format("<li>{}: {}</li>", escaped(run.label), escaped(note));
    }
    if (run.refused > 0) {
      list += fmt::format("<li>{}: {} jobs were refused, among them:</li>", escaped(run.label),
                          run.refused);
      add_list(list, run.refused_first);
    }
    for (const auto& [reason, jobs] : run.never_reasons) {
      list += fmt::format("<li>{}: {} jobs never started ({})</li>", escaped(run.label), jobs,
                          escaped(reason));
    }
  }
  if (!list.empty()) out += "<h2>Notes</h2><ul>" + list + "</ul>\n";
}

}  // namespace

std::string render_html(const Report& report) {
  const bool gpus =
      std::ranges::any_of(report.runs, [](const Outcome& run) { return run.gpus > 0; });
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light "
      "dark\">";
  out += fmt::format("<title>berth simulate: {}</title><style>{}</style></head><body><main>\n",
                     escaped(report.trace), kStyle);
  out += fmt::format("<h1>{}</h1>", escaped(report.trace));
  for (const Outcome& run : report.runs) {
    out += fmt::format("<p>{}: {} jobs on {} nodes with {} CPUs and {} GPUs</p>",
                       escaped(run.label), run.jobs, run.nodes, run.cpus, run.gpus);
  }
  if (report.runs.size() > 1) {
    out += fmt::format(
        "<div class=\"key\"><span><i class=\"key0\"></i>{}</span><span><i "
        "class=\"key1\"></i>{}</span></div>",
        escaped(report.runs[0].label), escaped(report.runs[1].label));
  }
  out += "<div class=\"cards\">";
  if (gpus) {
    add_card(out, report, "GPUs allocated", Unit::percent, &Outcome::gpu);
    add_card(out, report, "free GPUs of no use", Unit::percent, &Outcome::stranded);
  }
  add_card(out, report, "CPUs allocated", Unit::percent, &Outcome::cpu);
  add_wait_card(out, report, "mean wait", &Spread::mean, &Outcome::wait, Unit::duration);
  add_wait_card(out, report, "95 % waited at most", &Spread::p95, &Outcome::wait, Unit::duration);
  add_wait_card(out, report, "mean bounded slowdown", &Spread::mean, &Outcome::slowdown,
                Unit::ratio);
  out += "</div>\n<div class=\"plots\">\n";
  if (gpus) {
    out +=
        render_plot(over_time(report, "GPUs allocated", "of all GPUs", Axis::percent, &Point::gpu));
    out += render_plot(over_time(report, "Free GPUs of no use to the jobs asked for", "of all GPUs",
                                 Axis::percent, &Point::stranded));
  }
  out +=
      render_plot(over_time(report, "CPUs allocated", "of all CPUs", Axis::percent, &Point::cpu));
  out += render_plot(over_time(report, "Jobs waiting", "jobs", Axis::count, &Point::waiting));
  out += render_plot(over_time(report, "Jobs running", "jobs", Axis::count, &Point::running));
  out += render_plot(waits(report));
  out += "</div>\n";
  add_table(out, report);
  add_sizes(out, report);
  add_notes(out, report);
  return out + "</main></body></html>\n";
}

}  // namespace berth::simulate
