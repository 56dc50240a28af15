// The output of `sacct -P` (or -p) of a site: the first line names the columns. One line is one
// job; lines of steps are passed over.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "simulate/fields.h"
#include "simulate/trace.h"
#include "text/duration.h"
#include "text/words.h"

namespace berth::simulate {
namespace {

constexpr std::size_t kMostColumns = 512;

class Columns {
 public:
  explicit Columns(std::string_view header) {
    split_at(header, '|', kMostColumns, names_);
    count_ = names_.size();
    if (count_ > 0 && names_.back().empty()) --count_;  // -p ends lines with "|"
  }
  void take(std::string_view line) { split_at(line, '|', kMostColumns, fields_); }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool whole() const { return fields_.size() >= count_; }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) < names_.size(); }
  /// The first of these columns that says something.
  [[nodiscard]] std::string_view text(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      const std::size_t at = find(name);
      if (at < fields_.size() && !text::trim(fields_[at]).empty()) return text::trim(fields_[at]);
    }
    return {};
  }

 private:
  [[nodiscard]] std::size_t find(std::string_view name) const {
    const auto at = std::ranges::find_if(names_, [&](std::string_view known) {
      return text::equal_ignoring_case(text::trim(known), name);
    });
    return static_cast<std::size_t>(at - names_.begin());
  }
  std::vector<std::string_view> names_;
  std::vector<std::string_view> fields_;
  std::size_t count_ = 0;
};

/// "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=1".
struct Tres {
  std::uint64_t cpus = 0, nodes = 0, memory_mb = 0, gpus = 0;
  std::string gpu_type;  // when it is one
};

Tres tres_of(std::string_view text) {
  Tres out;
  std::uint64_t typed = 0;
  int types = 0;
  std::vector<std::string_view> items;
  split_at(text, ',', 64, items);
  for (const std::string_view item : items) {
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = item.substr(0, equals);
    const std::string_view amount = item.substr(equals + 1);
    const auto count = static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(whole_of(amount).value_or(0), 0, kMostCount));
    if (name == "cpu") out.cpus = count;
    if (name == "node") out.nodes = count;
    if (name == "mem") out.memory_mb = megabytes_of(amount).value_or(0);
    if (name == "gres/gpu") out.gpus = count;
    if (name.starts_with("gres/gpu:") && count > 0) {
      typed = std::min<std::uint64_t>(typed + count, kMostCount);
      out.gpu_type = name.substr(9);
      ++types;
    }
  }
  out.gpus = std::max(out.gpus, typed);
  if (types != 1) out.gpu_type.clear();
  return out;
}

/// Columns of which one has to be there.
Result<void> check(const Columns& columns, std::string_view name) {
  const auto lacks = [&](std::string_view what, std::string_view add) {
    return fail(Code::bad_value, fmt::format("{}:1: there is no column {}", name, what),
                fmt::format("sacct -P -X -o {}", add));
  };
  constexpr std::string_view kAll =
      "JobID,User,Partition,Submit,Start,End,Elapsed,Timelimit,ReqCPUS,ReqMem,ReqTRES,NNodes,State";
  if (!columns.has("JobID") && !columns.has("JobIDRaw")) return lacks("JobID", kAll);
  if (!columns.has("Submit")) return lacks("Submit", kAll);
  if (!columns.has("Elapsed") && !columns.has("ElapsedRaw") &&
      (!columns.has("Start") || !columns.has("End"))) {
    return lacks("Elapsed", kAll);
  }
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [&](std::string_view one) { return columns.has(one); });
  };
  if (!any({"ReqCPUS", "AllocCPUS", "NCPUS", "ReqTRES", "AllocTRES"}))
    return lacks("ReqCPUS", kAll);
  return {};
}

std::uint32_t bounded(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min(value, kMostCount));
}

void read_memory(const Columns& columns, const Tres& asked, Ask& ask) {
  const std::uint64_t nodes = std::max(1U, ask.nodes);
  if (asked.memory_mb > 0) {
    ask.memory_per_node_mb = (asked.memory_mb + nodes - 1) / nodes;
    return;
  }
  std::string_view text = columns.text({"ReqMem"});
  if (text.empty()) return;
  const char kind = text.back();  // "4Gn": a node, "4Gc": a CPU, as older versions wrote it
  if (kind == 'n' || kind == 'c') text.remove_suffix(1);
  const std::uint64_t memory = megabytes_of(text).value_or(0);
  if (kind == 'c') {
    ask.memory_per_cpu_mb = memory;
  } else {
    ask.memory_per_node_mb = kind == 'n' ? memory : (memory + nodes - 1) / nodes;
  }
}

/// False with the reason when the line cannot be used.
bool read_ask(const Columns& columns, Ask& ask, std::string& why) {
  const Tres asked = tres_of(columns.text({"ReqTRES", "AllocTRES"}));
  const auto number = [&](std::initializer_list<std::string_view> names, std::uint64_t instead) {
    const auto value = whole_of(columns.text(names));
    return value && *value > 0 ? static_cast<std::uint64_t>(*value) : instead;
  };
  const std::uint64_t cpus = number({"ReqCPUS", "AllocCPUS", "NCPUS"}, asked.cpus);
  if (cpus == 0 || cpus > kMostCount) {
    why = "no number of CPUs";
    return false;
  }
  ask.nodes = bounded(number({"ReqNodes", "NNodes", "AllocNodes"}, asked.nodes));
  if (ask.nodes > 0 && cpus % ask.nodes == 0) {
    ask.tasks = ask.nodes;
    ask.cpus_per_task = bounded(cpus / ask.nodes);
  } else {
    ask.tasks = bounded(cpus);
  }
  ask.gpus = bounded(asked.gpus);
  if (!asked.gpu_type.empty()) ask.models.push_back(asked.gpu_type);
  read_memory(columns, asked, ask);
  ask.partition = columns.text({"Partition"});
  if (const auto comma = ask.partition.find(','); comma != std::string::npos) {
    ask.partition.resize(comma);
  }
  return true;
}

std::optional<std::int64_t> runtime_of(const Columns& columns) {
  const auto start = moment_of(columns.text({"Start"}));
  const auto end = moment_of(columns.text({"End"}));
  if (start && end && *end >= *start) return *end - *start;
  if (columns.has("Start") && !start) return std::nullopt;  // it never started
  return elapsed_of(columns.text({"ElapsedRaw", "Elapsed"}));
}

}  // namespace

Result<Trace> read_sacct(std::string_view text, std::string_view name) {
  Trace trace;
  trace.name = name;
  Lines lines(text);
  std::string_view line;
  if (!lines.next(line)) return fail(Code::bad_value, fmt::format("{}: it is empty", name));
  Columns columns(line);
  if (auto fine = check(columns, name); !fine) return pass(std::move(fine.error()));
  std::unordered_map<std::string, std::uint32_t> users;
  while (lines.next(line)) {
    if (text::trim(line).empty()) continue;
    if (trace.jobs.size() >= kMostJobs) {
      return fail(Code::limit, fmt::format("{}: more than {} jobs", name, kMostJobs));
    }
    if (line.size() > kMostLineBytes) {
      ++trace.lines;
      trace.skip(lines.number(), "longer than a line of a trace is");
      continue;
    }
    columns.take(line);
    const std::string_view id = columns.text({"JobID", "JobIDRaw"});
    if (id.find('.') != std::string_view::npos) continue;  // a step
    ++trace.lines;
    if (!columns.whole()) {
      trace.skip(lines.number(), fmt::format("less than {} columns", columns.count()));
      continue;
    }
    const auto submit = moment_of(columns.text({"Submit"}));
    const auto runtime = runtime_of(columns);
    const std::string_view state = columns.text({"State"});
    TraceJob job;
    Ask ask;
    std::string why;
    if (!submit) {
      trace.skip(lines.number(), "no time of submission");
      continue;
    }
    if (!runtime || *runtime > kMostSeconds) {
      trace.skip(lines.number(),
                 state.empty() ? "it never started" : fmt::format("it never started ({})", state));
      continue;
    }
    if (!read_ask(columns, ask, why)) {
      trace.skip(lines.number(), why);
      continue;
    }
    job.submit = *submit;
    job.runtime = *runtime;
    if (const auto limit = text::parse_time_limit(columns.text({"Timelimit"}));
        limit && !limit->unlimited) {
      job.limit_minutes = limit->minutes;
    }
    const std::string user(columns.text({"User", "UID"}));
    job.user = users.try_emplace(user, static_cast<std::uint32_t>(users.size())).first->second;
    job.line = lines.number();
    job.priority = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
        whole_of(columns.text({"Priority"})).value_or(0), 0, UINT32_MAX - 2));
    job.ask = trace.intern(std::move(ask));
    trace.jobs.push_back(job);
  }
  return trace;
}

}  // namespace berth::simulate
