#include "command/usage_text.h"

#include <fmt/format.h>

#include <iterator>

#include "command/show_text.h"
#include "text/hostlist.h"
#include "wire/step_figures.h"

namespace berth::command {
namespace {

constexpr std::string_view kUnits = "KMGTPE";

/// "2", "2.50".
std::string two_places(double value) {
  std::string text = fmt::format("{:.2f}", value);
  if (text.ends_with(".00")) text.resize(text.size() - 3);
  return text;
}

const wire::Spread& spread_of(const wire::StepFigures& figures, Quantity what) {
  switch (what) {
    case Quantity::cpu:
      return figures.cpu();
    case Quantity::memory:
      return figures.memory();
    case Quantity::address_space:
      return figures.address_space();
    case Quantity::pages:
      return figures.pages();
    case Quantity::read:
      return figures.read();
    case Quantity::written:
      return figures.written();
    case Quantity::cpu_khz:
      break;
  }
  return figures.cpu_khz();
}

bool names_node(Part part) {
  return part == Part::most_node || part == Part::least_node;
}
bool names_task(Part part) {
  return part == Part::most_task || part == Part::least_task;
}
bool of_least(Part part) {
  return part == Part::least || part == Part::least_node || part == Part::least_task;
}
bool is_known(const StepUsed& step, Part part) {
  return step.tasks_known || part == Part::average || part == Part::most || part == Part::total;
}

std::uint64_t value_of(const wire::Spread& spread, Part part) {
  switch (part) {
    case Part::average:
      return wire::mean(spread);
    case Part::most:
      return spread.most();
    case Part::least:
      return spread.least();
    default:
      return spread.total();
  }
}

/// The node or the task; false: the part is a value.
bool append_place(std::string& out, const StepUsed& step, const wire::Spread& spread, Part part) {
  const bool least = of_least(part);
  if (names_node(part)) {
    const std::string& node = least ? spread.least_node() : spread.most_node();
    append_or(out, node, step.nodes);
    return true;
  }
  if (!names_task(part)) return false;
  append_unsigned(out, least ? spread.least_rank() : spread.most_rank());
  return true;
}

void append_cpu_clock(std::string& out, std::uint64_t microseconds) {
  append_clock(out, static_cast<std::int64_t>(microseconds / 1'000'000));
}

/// One "name=value" of a TRES text.
enum class FigureKind { time, bytes, number };
void append_tres(std::string& out, std::string_view name, const StepUsed& step,
                 const wire::Spread& spread, Part part, FigureKind kind, const UsageStyle& style) {
  if (spread.tasks() == 0) return;
  if (!out.empty() && out.back() != ',') out += ',';
  out += name;
  out += '=';
  if (append_place(out, step, spread, part)) return;
  const std::uint64_t value = value_of(spread, part);
  if (kind == FigureKind::time) return append_cpu_clock(out, value);
  if (kind == FigureKind::bytes) return append_bytes(out, value, style);
  append_unsigned(out, value);
}

std::string first_node(std::string_view nodes) {
  const auto names = text::expand_hostlist(nodes);
  return names && !names->empty() ? names->front() : std::string();
}

constexpr std::uint64_t kMillijoules = 1000;

/// Slurm has it in all texts. It is of nodes, not of tasks: what their GPUs tell, 0 where they do
/// not.
void append_energy(std::string& out, const StepUsed& step, const wire::Spread& energy, Part part) {
  if (step.figures.cpu().tasks() == 0 || names_task(part)) return;
  if (!out.empty()) out += ',';
  out += "energy=";
  if (energy.tasks() == 0) {
    // All have the same, so that the first is named.
    out += names_node(part) ? first_node(step.nodes) : "0";
  } else if (!append_place(out, step, energy, part)) {
    append_unsigned(out, value_of(energy, part) / kMillijoules);
  }
}

}  // namespace

void append_bytes(std::string& out, std::uint64_t bytes, const UsageStyle& style) {
  if (style.unit != 0) {
    auto value = static_cast<double>(bytes);
    for (const char unit : kUnits) {
      value /= 1024;
      if (unit == style.unit) break;
    }
    out += two_places(value);
    out += style.unit;
    return;
  }
  std::size_t unit = 0;
  bool half = false;
  if (style.convert) {
    while (unit < kUnits.size() && !half && bytes >= 1024 && bytes % 512 == 0) {
      half = bytes % 1024 != 0;
      if (half) {
        fmt::format_to(std::back_inserter(out), "{}.50", bytes / 1024);
      }
      bytes /= 1024;
      ++unit;
    }
  }
  if (!half) append_unsigned(out, bytes);
  if (unit > 0) out += kUnits[unit - 1];
}

void append_joules(std::string& out, std::uint64_t joules, bool convert) {
  if (!convert || joules < 1000) return append_unsigned(out, joules);
  auto value = static_cast<double>(joules) / 1000;
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  out += two_places(value);
  out += kUnits[unit];
}

std::uint64_t joules_of(const wire::StepFigures& figures) {
  return figures.gpu_energy().total() / kMillijoules;
}

void append_khz(std::string& out, std::uint64_t khz, bool convert) {
  auto value = static_cast<double>(khz);
  std::size_t unit = 0;
  while (convert && value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  out += two_places(value);
  if (khz != 0) out += kUnits[unit];
}

void append_used(std::string& out, const StepUsed& step, Quantity what, Part part,
                 const UsageStyle& style) {
  const wire::Spread& spread = spread_of(step.figures, what);
  if (spread.tasks() == 0 || !is_known(step, part)) return;
  if (append_place(out, step, spread, part)) return;
  const std::uint64_t value = value_of(spread, part);
  switch (what) {
    case Quantity::cpu:
      return append_cpu_clock(out, value);
    case Quantity::cpu_khz:
      return append_khz(out, value, style.convert);
    case Quantity::pages:  // is no size: --units does not mean it
      return append_bytes(out, value, {.convert = style.convert});
    default:
      return append_bytes(out, value, style);
  }
}

void append_used_in(std::string& out, const StepUsed& step, Part part, const UsageStyle& style) {
  if (!is_known(step, part)) return;
  const wire::StepFigures& all = step.figures;
  std::string text;
  append_tres(text, "cpu", step, all.cpu(), part, FigureKind::time, style);
  append_energy(text, step, all.gpu_energy(), part);
  append_tres(text, "fs/disk", step, all.read(), part, FigureKind::bytes, style);
  append_tres(text, "gres/gpumem", step, all.gpu_memory(), part, FigureKind::bytes, style);
  append_tres(text, "gres/gpuutil", step, all.gpu_busy(), part, FigureKind::number, style);
  append_tres(text, "mem", step, all.memory(), part, FigureKind::bytes, style);
  append_tres(text, "pages", step, all.pages(), part, FigureKind::number, style);
  append_tres(text, "vmem", step, all.address_space(), part, FigureKind::bytes, style);
  out += text;
}

void append_used_out(std::string& out, const StepUsed& step, Part part, const UsageStyle& style) {
  if (!is_known(step, part)) return;
  std::string text;
  append_energy(text, step, wire::Spread(), part);  // none goes out
  append_tres(text, "fs/disk", step, step.figures.written(), part, FigureKind::bytes, style);
  out += text;
}

}  // namespace berth::command
