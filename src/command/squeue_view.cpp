#include "command/squeue_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "command/columns.h"
#include "command/squeue_fields.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::command {
namespace {

constexpr std::string_view kSqueueFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::string_view kLongFormat = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr std::string_view kStepFormat = "%.15i %.8j %.9P %.8u %.9M %N";
constexpr std::string_view kStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
constexpr std::string_view kStateFormat = "%.18i %.2t";

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
Result<SqueuePlan> plan_by(std::span<const Field<Row>> table, const SqueueOptions& options,
                           std::string_view format, std::string_view sort) {
  const FieldNames names = names_of(table, "Invalid job format specification");
  Result<Format> columns = options.long_fields
                               ? parse_long_format(*options.long_fields, names)
                               : parse_format(options.format.value_or(std::string(format)), names);
  if (!columns) return pass(std::move(columns.error()));
  Result<std::vector<SortKey>> keys = parse_sort(options.sort.value_or(std::string(sort)), names);
  if (!keys) return pass(std::move(keys.error()));
  return SqueuePlan{std::move(*columns), std::move(*keys), false};
}

/// Letters of the fields that need no more than wire::take_brief() takes.
constexpr std::string_view kBriefLetters = "ACDeiFjKlLMNpPQrRStTuUVY";

bool brief_is_enough(const SqueueOptions& options, const SqueuePlan& plan) {
  if (options.json || options.steps) return false;
  if (!options.accounts.empty() || !options.qos.empty() || !options.reservations.empty() ||
      !options.licenses.empty()) {
    return false;
  }
  const auto table = job_fields();
  const auto brief = [&](std::size_t field) {
    const char letter = table[field].letter;
    return letter != 0 && kBriefLetters.find(letter) != kBriefLetters.npos;
  };
  return std::ranges::all_of(plan.columns.columns,
                             [&](const Column& column) { return brief(column.field); }) &&
         std::ranges::all_of(plan.keys, [&](const SortKey& key) { return brief(key.field); });
}

/// What stands above the rows.
template <class Row>
std::string head_of(std::span<const Field<Row>> table, const SqueueOptions& options,
                    const SqueuePlan& plan, const Shown& shown) {
  std::string out;
  if ((options.long_format && options.header) || options.iterate_seconds != 0) {
    out += date_line(shown.now) + "\n";
  }
  if (options.clusters) out += fmt::format("CLUSTER: {}\n", shown.cluster);
  if (options.header) append_header(table, plan.columns, out);
  return out;
}

std::string_view default_format(const SqueueOptions& options) {
  if (options.start) return kStartFormat;
  if (options.only_state) return kStateFormat;
  if (options.long_format) return kLongFormat;
  return kSqueueFormat;
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

Result<SqueuePlan> squeue_plan(const SqueueOptions& options) {
  if (options.steps) return plan_by(step_fields(), options, kStepFormat, "P,i");
  Result<SqueuePlan> plan =
      plan_by(job_fields(), options, default_format(options), options.start ? "S" : "P,t,-p");
  if (plan) plan->brief = brief_is_enough(options, *plan);
  return plan;
}

JobListing::JobListing(const SqueueOptions& options, const SqueuePlan& plan, const Shown& shown,
                       const Viewer& viewer)
    : options_(options), plan_(plan), shown_(shown), viewer_(viewer), values_(plan.keys.size()) {}

void JobListing::add(const wire::JobInfo& job) {
  if (!wanted(options_, job, shown_, viewer_)) return;
  if (options_.each_partition && job.state() == "PENDING") {
    for (const std::string_view partition : text::split(job.partition(), ',')) {
      add_row({&job, partition});
    }
  } else {
    add_row({&job, job.partition()});
  }
}

void JobListing::add_row(const JobRow& row) {
  append_row(job_fields(), plan_.columns, row, shown_, lines_);
  ends_.push_back(lines_.size());
  for (std::size_t k = 0; k < plan_.keys.size(); ++k) {
    values_[k].push_back(sort_value(job_fields(), plan_.keys[k], row, shown_));
  }
}

std::string JobListing::text() const {
  std::string out = head_of(job_fields(), options_, plan_, shown_);
  out.reserve(out.size() + lines_.size());
  for (const std::size_t row : sorted_order(plan_.keys, values_, ends_.size(), true)) {
    const std::size_t begin = row == 0 ? 0 : ends_[row - 1];
    out.append(lines_, begin, ends_[row] - begin);
  }
  return out;
}

Result<std::string> squeue_text(const SqueueOptions& options, const wire::JobsReply& reply,
                                const Shown& shown, const Viewer& viewer) {
  const Result<SqueuePlan> plan = squeue_plan(options);
  if (!plan) return pass(plan.error());
  if (!options.steps) {
    JobListing listing(options, *plan, shown, viewer);
    for (const wire::JobInfo& job : reply.jobs()) listing.add(job);
    return listing.text();
  }
  std::vector<StepRow> rows;
  for (const wire::StepInfo& step : reply.steps()) {
    if (wanted_step(options, step, viewer)) rows.push_back({&step});
  }
  sort_rows<StepRow>(step_fields(), plan->keys, shown, rows, true);
  std::string out = head_of(step_fields(), options, *plan, shown);
  for (const StepRow& row : rows) append_row(step_fields(), plan->columns, row, shown, out);
  return out;
}

}  // namespace berth::command
