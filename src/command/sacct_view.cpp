#include "command/sacct_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "command/squeue_fields.h"
#include "text/words.h"

namespace berth::command {
namespace {

/// More elements than any array has.
constexpr std::size_t kMostElements = 1 << 20;

void append_line(const SacctOptions& options, const std::vector<SacctColumn>& columns,
                 const HistoryRow& row, const SacctShown& shown, std::string& out) {
  std::string value;
  for (const SacctColumn& column : columns) {
    value.clear();
    column.field->show(row, shown, value);
    append_cell(options.style, value, column.width, &column == &columns.back(), out);
  }
  out += '\n';
}

bool in_range(const std::optional<std::pair<std::uint64_t, std::uint64_t>>& range,
              std::uint64_t value) {
  return !range || (value >= range->first && value <= range->second);
}

/// -j 12.batch names one step; a job that is named only by steps shows no line of its own.
struct StepFilter {
  bool only_steps = false;
  std::vector<std::uint32_t> steps;
};
StepFilter steps_named(const SacctOptions& options, const wire::JobInfo& job) {
  StepFilter filter;
  bool whole = options.jobs.empty();
  for (const wire::JobName& name : options.jobs) {
    const bool same = name.id() == job.id() ||
                      (job.has_array_job_id() && name.id() == job.array_job_id()) ||
                      (job.has_het_job_id() && name.id() == job.het_job_id());
    if (!same) continue;
    if (name.has_step()) {
      filter.steps.push_back(name.step());
    } else {
      whole = true;
    }
  }
  filter.only_steps = !whole && !filter.steps.empty();
  return filter;
}

/// The pending rest of an array, one job for each element.
std::vector<wire::HistoryJob> elements_of(const wire::HistoryJob& rest) {
  std::vector<wire::HistoryJob> out;
  std::string_view tasks = rest.job().array_tasks();
  if (tasks.starts_with('[')) tasks.remove_prefix(1);
  tasks = tasks.substr(0, tasks.find_first_of("%]"));
  for (const std::string_view part : text::split(tasks, ',')) {
    const std::size_t dash = part.find('-');
    unsigned first = 0;
    std::from_chars(part.data(), part.data() + part.size(), first);
    unsigned last = first;
    if (dash != part.npos) {
      std::from_chars(part.data() + dash + 1, part.data() + part.size(), last);
    }
    for (unsigned task = first; task <= last && out.size() < kMostElements; ++task) {
      wire::HistoryJob& one = out.emplace_back(rest);
      one.mutable_job()->clear_array_tasks();
      one.mutable_job()->set_array_task_id(task);
    }
  }
  return out;
}

}  // namespace

Result<std::vector<SacctColumn>> parse_sacct_format(std::string_view text) {
  return parse_table_format(text, sacct_fields(), "sacct --helpformat lists the fields");
}

SacctShown sacct_shown(const SacctOptions& options, const Shown& shown, std::int64_t from) {
  SacctShown out{shown, options.unit, 0, 0};
  out.shown.convert = options.convert;
  out.shown.expand_patterns = options.expand_patterns;
  if (options.truncate) {
    out.from = from;
    out.until = options.until.value_or(shown.now);
  }
  return out;
}

std::string sacct_header(const SacctOptions& options, const std::vector<SacctColumn>& columns) {
  std::string out;
  append_table_header(options.style, columns, out);
  return out;
}

bool wanted_history(const SacctOptions& options, const wire::HistoryJob& entry) {
  const wire::JobInfo& job = entry.job();
  if (!options.states.names.empty() && !matches(options.states, job)) return false;
  if (!options.groups.empty() && !holds(options.groups, job.group()) &&
      !holds(options.groups, std::to_string(job.gid()))) {
    return false;
  }
  if (!options.wckeys.empty() && !holds(options.wckeys, job.wckey())) return false;
  if (!options.qos.empty() && !holds(options.qos, job.qos())) return false;
  if (!in_range(options.node_counts, job.node_count())) return false;
  if (!in_range(options.cpu_counts, job.cpus())) return false;
  const std::uint64_t limit = job.has_time_limit_minutes() ? job.time_limit_minutes() : UINT64_MAX;
  if (options.least_minutes && limit < *options.least_minutes) return false;
  return !options.most_minutes || limit <= *options.most_minutes;
}

void append_history(const SacctOptions& options, const std::vector<SacctColumn>& columns,
                    const wire::HistoryReply& reply, const SacctShown& shown, std::string& out) {
  for (const wire::HistoryJob& job : reply.jobs()) {
    if (!wanted_history(options, job)) continue;
    if (options.each_element && !job.job().array_tasks().empty()) {
      for (const wire::HistoryJob& one : elements_of(job)) {
        append_line(options, columns, {&one, nullptr}, shown, out);
      }
      continue;
    }
    const StepFilter filter = steps_named(options, job.job());
    if (!filter.only_steps) append_line(options, columns, {&job, nullptr}, shown, out);
    if (options.allocations) continue;
    for (const wire::HistoryStep& step : job.steps()) {
      if (filter.only_steps &&
          std::ranges::find(filter.steps, step.step().step_id()) == filter.steps.end()) {
        continue;
      }
      append_line(options, columns, {&job, &step}, shown, out);
    }
  }
}

void append_scripts(const SacctOptions& options, const wire::HistoryReply& reply,
                    std::string& out) {
  const auto add = [&](std::string_view what, const wire::HistoryJob& job,
                       const std::string& text) {
    std::string title = fmt::format("{} for {}", what, job.job().id());
    out += title + "\n" + std::string(80, '-') + "\n";
    out += text.empty() ? "NONE\n" : text;
    if (!out.ends_with('\n')) out += '\n';
  };
  for (const wire::HistoryJob& job : reply.jobs()) {
    if (!wanted_history(options, job)) continue;
    if (options.scripts) add("Batch Script", job, job.script());
    if (options.environments) add("Environment used", job, job.environment());
  }
}

std::string sacct_field_names() {
  return field_names(sacct_fields());
}

}  // namespace berth::command
