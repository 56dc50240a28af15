#include "command/sstat_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "command/show_text.h"
#include "text/hostlist.h"
#include "wire/job_names.h"
#include "wire/step_ids.h"

namespace berth::command {
namespace {

using Row = SstatRow;
using Style = UsageStyle;
using Out = std::string;

constexpr std::string_view kSstatPids = "Pids";

/// By its own number, also of an array: as Slurm's does.
std::string step_name(const wire::StepInfo& step) {
  wire::JobName name;
  name.set_id(step.job_id());
  name.set_step(step.step_id());
  return wire::shown(name);
}

StepUsed used(const Row& row) {
  return {.figures = row.step->figures(), .nodes = row.step->step().nodes()};
}

void append_nodes(const Row& row, Out& out) {
  out += row.node != nullptr ? row.node->node() : row.step->step().nodes();
}

void append_pids(const Row& row, Out& out) {
  const auto append = [&](const wire::NodePids& node) {
    for (const std::uint32_t pid : node.pids()) {
      if (!out.empty()) out += ',';
      append_unsigned(out, pid);
    }
  };
  if (row.node != nullptr) return append(*row.node);
  for (const wire::NodePids& node : row.step->pids()) append(node);
}

/// --cpu-freq is recorded with the job, and no step has a wish of its own. Slurm writes that of a
/// script in another way.
void append_wish(const Row& row, Out& out) {
  const std::uint32_t id = row.step->step().step_id();
  out += id == wire::kBatchStep || id == wire::kExternStep ? "0" : "Unknown";
}

#define SHOW(...) [](const Row& row, [[maybe_unused]] const Style& style, Out& out) { __VA_ARGS__; }
#define USED(what, part) SHOW(append_used(out, used(row), Quantity::what, Part::part, style))
#define IN(part) SHOW(append_used_in(out, used(row), Part::part, style))
#define OUT(part) SHOW(append_used_out(out, used(row), Part::part, style))

constexpr SstatField kSstatFields[] = {
    {"AveCPU", 10, USED(cpu, average)},
    {"AveCPUFreq", 10, USED(cpu_khz, average)},
    {"AveDiskRead", 12, USED(read, average)},
    {"AveDiskWrite", 12, USED(written, average)},
    {"AvePages", 10, USED(pages, average)},
    {"AveRSS", 10, USED(memory, average)},
    {"AveVMSize", 10, USED(address_space, average)},
    {"ConsumedEnergy", 14, SHOW(append_joules(out, joules_of(row.step->figures()), style.convert))},
    {"ConsumedEnergyRaw", 17, SHOW(append_joules(out, joules_of(row.step->figures()), false))},
    {"JobID", -12, SHOW(out += step_name(row.step->step()))},
#include "command/most_used_fields.def"
    {"MaxRSS", 10, USED(memory, most)},
    {"MaxRSSNode", 10, USED(memory, most_node)},
    {"MaxRSSTask", 10, USED(memory, most_task)},
    {"MaxVMSize", 10, USED(address_space, most)},
    {"MaxVMSizeNode", 14, USED(address_space, most_node)},
    {"MaxVMSizeTask", 14, USED(address_space, most_task)},
    {"MinCPU", 10, USED(cpu, least)},
    {"MinCPUNode", 10, USED(cpu, least_node)},
    {"MinCPUTask", 10, USED(cpu, least_task)},
    {"Nodelist", 20, SHOW(append_nodes(row, out))},
    {"NTasks", 8, SHOW(append_unsigned(out, row.step->step().tasks()))},
    {kSstatPids, 20, SHOW(append_pids(row, out))},
    {"ReqCPUFreq", 10, SHOW(append_wish(row, out))},
    {"ReqCPUFreqMin", 13, SHOW(append_wish(row, out))},
    {"ReqCPUFreqMax", 13, SHOW(append_wish(row, out))},
    {"ReqCPUFreqGov", 13, SHOW(append_wish(row, out))},
#include "command/tres_usage_fields.def"
};

#undef SHOW
#undef USED
#undef IN
#undef OUT

void append_step(const SstatOptions& options, const std::vector<SstatColumn>& columns,
                 const wire::MeasuredStep& step, SstatText& out) {
  const UsageStyle style{.convert = options.convert};
  const auto append_line = [&](const Row& row) {
    std::string value;
    for (const SstatColumn& column : columns) {
      value.clear();
      column.field->show(row, style, value);
      append_cell(options.style, value, column.width, &column == &columns.back(), out.table);
    }
    out.table += '\n';
  };
  if (!options.pid_format) return append_line({&step, nullptr});
  for (const wire::NodePids& node : step.pids()) append_line({&step, &node});
}

/// What is to be said of a name that no step was found for.
void append_fault(const wire::JobName& name, const wire::AskedSteps& asked, SstatText& out) {
  wire::JobName job = name;
  job.clear_step();
  const std::string shown = wire::shown(job);
  if (asked.fault() == "no job") {
    out.messages.push_back({Severity::error, fmt::format("couldn't get steps for job {}", shown)});
  } else if (asked.fault() == "no steps") {
    out.messages.push_back({Severity::error, fmt::format("No steps running for job {}", shown)});
  } else if (asked.fault() == "no step") {
    out.messages.push_back(
        {Severity::error, fmt::format("StepId={} not found running.", wire::shown(name))});
  } else if (asked.only_special()) {
    out.hints.push_back(fmt::format(
        "job {} runs no numbered step: sstat -j {}.batch shows its script, sstat -a -j {} all",
        shown, shown, shown));
  }
}

}  // namespace

std::span<const SstatField> sstat_fields() {
  return kSstatFields;
}

Result<std::vector<SstatColumn>> parse_sstat_format(std::string_view text) {
  return parse_table_format(text, sstat_fields(), "sstat --helpformat lists the fields");
}

wire::MeasureSteps sstat_request(const SstatOptions& options,
                                 const std::vector<SstatColumn>& columns) {
  wire::MeasureSteps ask;
  for (const wire::JobName& name : options.steps) *ask.add_steps() = name;
  ask.set_all_steps(options.all_steps);
  ask.set_with_pids(std::ranges::any_of(
      columns, [](const SstatColumn& column) { return column.field->name == kSstatPids; }));
  return ask;
}

SstatText sstat_text(const SstatOptions& options, const std::vector<SstatColumn>& columns,
                     const wire::StepsMeasured& reply) {
  SstatText out;
  append_table_header(options.style, columns, out.table);
  for (int i = 0; i < reply.asked_size(); ++i) {
    const wire::AskedSteps& asked = reply.asked(i);
    if (static_cast<std::size_t>(i) < options.steps.size()) {
      append_fault(options.steps[static_cast<std::size_t>(i)], asked, out);
    }
    for (const wire::MeasuredStep& step : asked.steps()) {
      const std::string name = step_name(step.step());
      if (step.denied()) {
        out.messages.push_back(
            {Severity::error,
             fmt::format("problem getting step_layout for StepId={}: Invalid user id", name)});
        continue;
      }
      if (options.verbose) {
        out.messages.push_back(
            {Severity::plain, fmt::format("step {}: {} tasks on {}", name, step.step().tasks(),
                                          step.step().nodes())});
      }
      if (step.missing_size() > 0) {
        const std::vector<std::string> missing(step.missing().begin(), step.missing().end());
        out.hints.push_back(fmt::format("{} {} not answered: the figures of step {} are without {}",
                                        text::compress_hostlist(missing),
                                        missing.size() == 1 ? "has" : "have", name,
                                        missing.size() == 1 ? "it" : "them"));
      }
      append_step(options, columns, step, out);
    }
  }
  return out;
}

}  // namespace berth::command
