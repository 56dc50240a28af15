#include "command/squeue_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "command/columns.h"
#include "command/squeue_fields.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::command {
namespace {

constexpr std::string_view kFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::string_view kLongFormat = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr std::string_view kStepFormat = "%.15i %.8j %.9P %.8u %.9M %N";
constexpr std::string_view kStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
constexpr std::string_view kStateFormat = "%.18i %.2t";

bool holds(const std::vector<std::string>& list, std::string_view value) {
  return std::ranges::find(list, value) != list.end();
}

/// Any of the comma-separated words of `value` ("a,b" while a job may still choose; licenses).
bool holds_any(const std::vector<std::string>& list, std::string_view value) {
  for (std::string_view word : text::split(value, ',')) {
    word = word.substr(0, word.find(':'));
    if (holds(list, word)) return true;
  }
  return false;
}

bool runs_on(const std::string& nodes, const std::vector<std::string>& list) {
  if (nodes.empty()) return false;
  const Result<std::vector<std::string>> names = text::expand_hostlist(nodes);
  return names && std::ranges::any_of(*names, [&](const auto& name) { return holds(list, name); });
}

bool in_array_set(std::string_view set, std::uint32_t task) {
  for (const std::string_view part : text::split(set, ',')) {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    const std::size_t dash = part.find('-');
    first = static_cast<std::uint32_t>(std::strtoul(std::string(part).c_str(), nullptr, 10));
    last = dash == part.npos ? first
                             : static_cast<std::uint32_t>(std::strtoul(
                                   std::string(part.substr(dash + 1)).c_str(), nullptr, 10));
    if (task >= first && task <= last) return true;
  }
  return false;
}

bool names_step(const wire::JobName& name, const wire::StepInfo& step) {
  if (name.has_step() && name.step() != step.step_id()) return false;
  const std::uint32_t array = step.has_array_job_id() ? step.array_job_id() : step.job_id();
  if (name.has_array_task()) {
    return array == name.id() && step.array_task_id() == name.array_task();
  }
  if (!name.array_set().empty()) {
    return array == name.id() && in_array_set(name.array_set(), step.array_task_id());
  }
  return name.id() == step.job_id() || name.id() == array;
}

bool wanted_step(const SqueueOptions& options, const wire::StepInfo& step, const Viewer& viewer) {
  if (!options.step_names.empty() &&
      std::ranges::none_of(options.step_names,
                           [&](const auto& name) { return names_step(name, step); })) {
    return false;
  }
  if (!options.jobs.empty() && std::ranges::none_of(options.jobs, [&](const auto& name) {
        return names_step(name, step);
      })) {
    return false;
  }
  if (options.me && step.uid() != viewer.uid) return false;
  if (options.not_me && step.uid() == viewer.uid) return false;
  if (!options.users.empty() && !holds(options.users, step.user()) &&
      !holds(options.users, std::to_string(step.uid()))) {
    return false;
  }
  if (!options.partitions.empty() && !holds(options.partitions, step.partition())) return false;
  if (!options.names.empty() && !holds(options.names, step.name())) return false;
  return options.nodes.empty() || runs_on(step.nodes(), options.nodes);
}

template <class Row>
Result<std::string> listing(std::span<const Field<Row>> table, std::vector<Row> rows,
                            const SqueueOptions& options, std::string_view format,
                            std::string_view sort, const Shown& shown) {
  FieldNames names = names_of(table, "Invalid job format specification");
  Result<Format> columns = options.long_fields
                               ? parse_long_format(*options.long_fields, names)
                               : parse_format(options.format.value_or(std::string(format)), names);
  if (!columns) return pass(std::move(columns.error()));
  Result<std::vector<SortKey>> keys = parse_sort(options.sort.value_or(std::string(sort)), names);
  if (!keys) return pass(std::move(keys.error()));
  sort_rows<Row>(table, *keys, shown, rows, true);

  std::string out;
  out.reserve(128 * (rows.size() + 2));
  if ((options.long_format && options.header) || options.iterate_seconds != 0) {
    out += date_line(shown.now) + "\n";
  }
  if (options.clusters) out += fmt::format("CLUSTER: {}\n", shown.cluster);
  if (options.header) append_header(table, *columns, out);
  for (const Row& row : rows) append_row(table, *columns, row, shown, out);
  return out;
}

std::string_view default_format(const SqueueOptions& options) {
  if (options.start) return kStartFormat;
  if (options.only_state) return kStateFormat;
  if (options.long_format) return kLongFormat;
  return kFormat;
}

}  // namespace

bool wanted(const SqueueOptions& options, const wire::JobInfo& job, const Shown& shown,
            const Viewer& viewer) {
  if (!matches(options.states, job)) return false;
  if (options.me && job.uid() != viewer.uid) return false;
  if (options.not_me && job.uid() == viewer.uid) return false;
  if (!options.users.empty() && !holds(options.users, job.user()) &&
      !holds(options.users, std::to_string(job.uid()))) {
    return false;
  }
  if (!options.partitions.empty() && !holds_any(options.partitions, job.partition())) return false;
  if (!options.names.empty() && !holds(options.names, job.name())) return false;
  if (!options.accounts.empty() && !holds(options.accounts, job.account())) return false;
  if (!options.qos.empty() && !holds(options.qos, job.qos())) return false;
  if (!options.reservations.empty() && !holds(options.reservations, job.reservation())) {
    return false;
  }
  if (!options.licenses.empty() && !holds_any(options.licenses, job.licenses())) return false;
  if (!options.nodes.empty() && !runs_on(job.nodes(), options.nodes)) return false;
  if (options.running_over || options.running_under) {
    if (job.state() != "RUNNING") return false;
    const std::int64_t seconds = run_seconds_of(job, shown.now);
    if (options.running_over && seconds <= *options.running_over) return false;
    if (options.running_under && seconds >= *options.running_under) return false;
  }
  return true;
}

Result<std::string> squeue_text(const SqueueOptions& options, const wire::JobsReply& reply,
                                const Shown& shown, const Viewer& viewer) {
  if (options.steps) {
    std::vector<StepRow> rows;
    for (const wire::StepInfo& step : reply.steps()) {
      if (wanted_step(options, step, viewer)) rows.push_back({&step});
    }
    return listing(step_fields(), std::move(rows), options, kStepFormat, "P,i", shown);
  }
  std::vector<JobRow> rows;
  rows.reserve(static_cast<std::size_t>(reply.jobs_size()));
  for (const wire::JobInfo& job : reply.jobs()) {
    if (!wanted(options, job, shown, viewer)) continue;
    if (options.each_partition && job.state() == "PENDING") {
      for (const std::string_view partition : text::split(job.partition(), ',')) {
        rows.push_back({&job, partition});
      }
    } else {
      rows.push_back({&job, job.partition()});
    }
  }
  return listing(job_fields(), std::move(rows), options, default_format(options),
                 options.start ? "S" : "P,t,-p", shown);
}

}  // namespace berth::command
