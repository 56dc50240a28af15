#include <fmt/format.h>

#include "simulate/render.h"

namespace berth::simulate {
namespace {

/// Values as they come; the caller keeps the order of keys.
class Json {
 public:
  void open(std::string_view key, char bracket) {
    begin(key);
    out_ += bracket;
    first_ = true;
    ++depth_;
  }
  void close(char bracket) {
    --depth_;
    line();
    out_ += bracket;
    first_ = false;
  }
  void text(std::string_view key, std::string_view value) {
    begin(key);
    quote(value);
  }
  void number(std::string_view key, std::int64_t value) {
    begin(key);
    out_ += fmt::format("{}", value);
  }
  void count(std::string_view key, std::uint64_t value) {
    begin(key);
    out_ += fmt::format("{}", value);
  }
  void real(std::string_view key, double value) {
    begin(key);
    out_ += fmt::format("{:.9g}", value);
  }
  void raw(std::string_view value) {
    begin({});
    out_ += value;
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    open(key, '[');
    for (const std::string& value : values) text({}, value);
    close(']');
  }
  std::string done() { return std::move(out_) + "\n"; }

 private:
  void begin(std::string_view key) {
    if (depth_ > 0) {
      if (!first_) out_ += ',';
      line();
    }
    first_ = false;
    if (!key.empty()) {
      quote(key);
      out_ += ": ";
    }
  }
  void line() {
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  }
  void quote(std::string_view value) {
    out_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }
  std::string out_;
  int depth_ = 0;
  bool first_ = true;
};

void add_spread(Json& json, std::string_view key, const Spread& spread) {
  json.open(key, '{');
  json.count("count", spread.count);
  json.real("mean", spread.mean);
  json.real("median", spread.median);
  json.real("p95", spread.p95);
  json.real("max", spread.max);
  json.close('}');
}

void add_run(Json& json, const Outcome& run) {
  json.open({}, '{');
  json.text("configuration", run.label);
  json.count("nodes", run.nodes);
  json.count("cpus", run.cpus);
  json.count("gpus", run.gpus);
  json.texts("notes", run.notes);
  json.open("jobs", '{');
  json.count("submitted", run.jobs);
  json.count("started", run.started);
  json.count("backfilled", run.backfilled);
  json.count("completed", run.completed);
  json.count("timed_out", run.timed_out);
  json.count("ended_otherwise", run.otherwise);
  json.count("started_again", run.restarts);
  json.count("preemptions", run.preemptions);
  json.count("refused", run.refused);
  json.count("never_started", run.never_started);
  json.close('}');
  json.texts("refused_first", run.refused_first);
  json.open("never_started_reasons", '{');
  for (const auto& [reason, jobs] : run.never_reasons) json.count(reason, jobs);
  json.close('}');
  json.number("arrivals_seconds", run.arrivals);
  json.number("makespan_seconds", run.makespan);
  json.open("allocated", '{');
  json.real("cpu", run.cpu);
  json.real("gpu", run.gpu);
  json.real("cpu_while_arriving", run.cpu_arrivals);
  json.real("gpu_while_arriving", run.gpu_arrivals);
  json.close('}');
  json.open("fragmentation", '{');
  json.real("of_all_gpus", run.stranded);
  json.real("of_free_gpus", run.stranded_of_free);
  json.close('}');
  json.open("queue", '{');
  json.real("mean", run.waiting);
  json.count("most", run.most_waiting);
  json.close('}');
  add_spread(json, "wait_seconds", run.wait);
  add_spread(json, "bounded_slowdown", run.slowdown);
  json.open("by_gpus", '[');
  for (const SizeClass& size : run.sizes) {
    json.open({}, '{');
    json.text("gpus", size.label);
    add_spread(json, "wait_seconds", size.wait);
    add_spread(json, "bounded_slowdown", size.slowdown);
    json.close('}');
  }
  json.close(']');
  json.open("wait_curve", '[');
  for (const auto& [seconds, part] : run.wait_curve) {
    json.raw(fmt::format("[{}, {:.9g}]", seconds, part));
  }
  json.close(']');
  json.open("over_time", '{');
  json.number("seconds_each", run.width);
  json.texts("columns", {"at_seconds", "cpu", "gpu", "waiting", "running", "fragmented_gpu"});
  json.open("rows", '[');
  for (const Point& point : run.points) {
    json.raw(fmt::format("[{}, {:.6g}, {:.6g}, {:.6g}, {:.6g}, {:.6g}]", point.at, point.cpu,
                         point.gpu, point.waiting, point.running, point.stranded));
  }
  json.close(']');
  json.close('}');
  json.open("scheduler", '{');
  json.count("passes", run.passes);
  json.count("placements", run.placements);
  json.close('}');
  json.close('}');
}

}  // namespace

std::string render_json(const Report& report) {
  Json json;
  json.open({}, '{');
  json.open("trace", '{');
  json.text("name", report.trace);
  json.text("format", report.format);
  json.count("lines", report.lines);
  json.count("not_used", report.skipped);
  json.texts("not_used_first", report.skipped_first);
  json.texts("notes", report.notes);
  json.close('}');
  json.open("runs", '[');
  for (const Outcome& run : report.runs) add_run(json, run);
  json.close(']');
  json.close('}');
  return json.done();
}

}  // namespace berth::simulate
