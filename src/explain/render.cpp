// Text: what is asked, what is given, every step as a table, findings.
#include "explain/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/printable.h"
#include "explain/table.h"
#include "explain/words.h"
#include "text/hostlist.h"
#include "text/size.h"

namespace berth::explain {
namespace {

constexpr std::size_t kMaxRows = 64;    // longer tables are shortened …
constexpr std::size_t kFirstRows = 48;  // … to so many rows at the beginning
constexpr std::size_t kLastRows = 4;    // … and so many at the end
constexpr std::size_t kHeadWidth = 100;

enum class Colour { none, bold, red, yellow, cyan, dim };

class Painter {
 public:
  explicit Painter(bool on) : on_(on) {}
  [[nodiscard]] std::string operator()(Colour colour, std::string text) const {
    if (!on_ || colour == Colour::none) return text;
    return fmt::format("\033[{}m{}\033[0m", code(colour), text);
  }

 private:
  static std::string_view code(Colour colour) {
    switch (colour) {
      case Colour::none:
        return "0";
      case Colour::bold:
        return "1";
      case Colour::red:
        return "1;31";
      case Colour::yellow:
        return "1;33";
      case Colour::cyan:
        return "36";
      case Colour::dim:
        return "2";
    }
    return "0";
  }
  bool on_;
};

/// A script must not write on the terminal; a command of several lines stands in one.
std::string printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  make_printable(out, 0);
  return out;
}

/// "0-3 a100", "0,1 tesla_v100 2,3 a100", "0-7".
std::string gpus_text(const std::vector<Gpu>& gpus) {
  std::vector<std::pair<std::string, Bits>> by_type;
  for (const Gpu& gpu : gpus) {
    if (by_type.empty() || by_type.back().first != gpu.type) by_type.push_back({gpu.type, {}});
    by_type.back().second.set(gpu.index);
  }
  std::string out;
  for (const auto& [type, indices] : by_type) {
    if (!out.empty()) out += " ";
    out += indices.ranges();
    if (!type.empty()) out += " " + type;
  }
  return out;
}

std::string list_of(const std::vector<std::uint32_t>& ids) {
  Bits bits;
  for (const std::uint32_t id : ids) bits.set(id);
  std::string out = bits.ranges();
  return out;
}

std::string steps_named(const std::vector<std::uint32_t>& ids) {
  if (ids.size() == 1) return fmt::format("step {}", ids.front());
  return fmt::format("steps {}", list_of(ids));
}

class Writer {
 public:
  Writer(const Explanation& explanation, const Style& style)
      : e_(explanation), style_(style), paint_(style.colour) {}

  std::string run() {
    head();
    if (e_.error && !e_.accepted && e_.steps.empty()) refused(*e_.error);
    nodes();
    elements();
    batch();
    steps();
    findings();
    notes();
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += text + '\n'; }

  /// Label and text side by side, as "train.sh asks for   2 nodes".
  void labelled(const std::string& label, const std::string& text) {
    const std::size_t width = std::max<std::size_t>(label_width_, width_of(label));
    line(paint_(Colour::bold, label) + std::string(width - width_of(label) + 2, ' ') + text);
  }

  void head() {
    const std::string name = cut(printable(e_.name), 60);
    const std::string label = name + " asks for";
    label_width_ = std::max<std::size_t>(width_of(label), std::string_view("it would get").size());
    for (std::size_t i = 0; i < e_.asks.size(); ++i) {
      const std::string part = e_.asks.size() > 1 ? fmt::format("component {}: ", i) : "";
      labelled(i == 0 ? label : "",
               part + printable(e_.asks[i].empty() ? "1 node, 1 task" : e_.asks[i]));
    }
    if (e_.array_size) {
      labelled("", fmt::format("an array of {}; what follows is the first of them",
                               counted(*e_.array_size, "job")));
    }
    for (const std::string& message : e_.messages) line("  " + printable(message));
  }

  void refused(const Refusal& error) {
    const std::string who = e_.asks.empty() ? cut(printable(e_.name), 60) : std::string("it");
    if (error.exit_code == 0) {
      line(who + " only answers:");  // --help, --hint=help and the like
      if (error.lines.empty()) line("  " + error.text);
    } else {
      line(paint_(Colour::red, fmt::format("{} is refused, exit code {}:", who, error.exit_code)));
    }
    for (const std::string& text : error.lines) line("  " + printable(text));
    const bool repeats = error.hint.starts_with(error.nearest_miss);
    if (!error.nearest_miss.empty() && !repeats) line("  " + printable(error.nearest_miss));
    if (!error.hint.empty()) hint(error.hint);
  }

  void hint(const std::string& text) {
    std::size_t at = 0;
    while (at <= text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      line("  " + paint_(Colour::cyan, printable(text.substr(at, end - at))));
      at = end + 1;
    }
  }

  void verdict() {
    if (e_.verdict != place::Verdict::later && e_.verdict != place::Verdict::pending) return;
    const char* what = e_.verdict == place::Verdict::later
                           ? "it would wait: it fits this cluster, but not what is free now"
                           : "it is accepted, and would not start";
    std::string text = fmt::format("{} ({})", what, e_.pending_reason);
    line(paint_(Colour::yellow, text));
    if (!e_.pending_text.empty()) line("  " + printable(e_.pending_text));
  }

  /// What a node gives, without its name.
  static std::string share_text(const JobNode& node) {
    std::string out = fmt::format("CPUs {}", node.cpu_mask.ranges());
    if (!node.gpus.empty()) out += fmt::format("  GPUs {}", gpus_text(node.gpus));
    if (node.gpu_memory_mb > 0) {
      out += fmt::format(" ({} of its memory)", text::format_mb(node.gpu_memory_mb));
    }
    if (node.shards > 0) out += fmt::format("  {}", counted(node.shards, "shard"));
    out += fmt::format("  {}", text::format_mb(node.memory_mb));
    return out;
  }

  void nodes() {
    verdict();
    if (e_.nodes.empty()) return;
    std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // share → names
    for (const JobNode& node : e_.nodes) {
      const std::string share = share_text(node);
      if (groups.empty() || groups.back().first != share) groups.push_back({share, {}});
      groups.back().second.push_back(node.name);
    }
    std::string label = e_.assumes_idle ? "when it is free" : "it would get";
    std::size_t shown = 0;
    for (const auto& [share, names] : groups) {
      if (++shown > kMaxRows && !style_.all_tasks) {
        labelled("", fmt::format("… and more, {} in all", counted(e_.nodes.size(), "node")));
        break;
      }
      labelled(label, fmt::format("{}: {}", printable(text::compress_hostlist(names)), share) +
                          (names.size() > 1 ? " each" : ""));
      label.clear();
    }
  }

  /// The elements of an array: how many start at once, and who gets which GPU.
  void elements() {
    if (e_.elements.size() < 2) return;
    std::size_t start = 0;
    bool gpus = false;
    for (const Element& element : e_.elements) {
      if (!element.starts) continue;
      ++start;
      for (const JobNode& node : element.nodes) gpus = gpus || !node.gpus.empty();
    }
    line("");
    std::string why;
    if (e_.array_most && start == *e_.array_most && start < e_.elements.size()) {
      why = fmt::format(", because of %{} in --array", *e_.array_most);
    }
    if (*e_.array_size > e_.elements.size()) why += " (only so many are followed)";
    line(fmt::format("{} of the array's {} would start at once{}", start,
                     counted(e_.elements.size(), "element"), why));
    std::size_t shown = 0;
    for (const Element& element : e_.elements) {
      if (!gpus || !element.starts) continue;
      if (++shown > kMaxRows && !style_.all_tasks) {
        line("  …");
        break;
      }
      for (const JobNode& node : element.nodes) {
        line(fmt::format("  {:>5}  {}: {}", element.index, printable(node.name), share_text(node)));
      }
    }
  }

  /// The batch script itself, where nothing else starts processes.
  void batch() {
    if (!e_.batch || !e_.steps.empty()) return;
    line("");
    line(fmt::format("no launcher line found{}: the script's commands run once, on {}",
                     e_.script_truncated ? " in the part of the script that was read" : "",
                     e_.batch->node));
    table({&*e_.batch}, false);
  }

  // ---- steps

  /// Steps that a loop makes of one line, simple enough for one row each.
  static bool same_heading(const Step& a, const Step& b) {
    if (a.line == b.line && a.start == StepStart::unknown && b.start == a.start) return true;
    return a.line == b.line && a.line != 0 && a.kind == StepKind::step &&
           b.kind == StepKind::step && a.launcher == b.launcher && !a.error && !b.error &&
           a.tasks.size() == 1 && b.tasks.size() == 1 && !a.uncertain && !b.uncertain &&
           a.messages == b.messages;
  }

  void steps() {
    for (std::size_t i = 0; i < e_.steps.size();) {
      std::size_t end = i + 1;
      while (end < e_.steps.size() && same_heading(e_.steps[i], e_.steps[end])) ++end;
      line("");
      if (end - i > 1 && e_.steps[i].start == StepStart::unknown) {
        single(e_.steps[i]);
        line(fmt::format("  and {} more of this line", end - i - 1));
      } else if (end - i > 1) {
        repeated(i, end);
      } else {
        single(e_.steps[i]);
      }
      i = end;
    }
  }

  static std::string start_text(const Step& step) {
    switch (step.start) {
      case StepStart::at_once:
        if (step.beside.empty()) return "starts at once";
        return "starts at once, beside " + steps_named(step.beside);
      case StepStart::waits:
        return step.waits_for.empty() ? "waits"
                                      : "waits until " + steps_named(step.waits_for) +
                                            (step.waits_for.size() == 1 ? " ends" : " end");
      case StepStart::refused:
        return "fails";
      case StepStart::never:
        return "waits for ever";
      case StepStart::unknown:
        return "cannot be planned";
    }
    return "";
  }

  static std::string what_it_is(const Step& step) {
    switch (step.kind) {
      case StepKind::step:
        return step.id ? fmt::format("step {}, ", *step.id) : "";
      case StepKind::mpirun:
        return step.id ? fmt::format("{} of mpirun (daemons are step {}), ",
                                     counted(step.tasks.size(), "rank"), *step.id)
                       : fmt::format("{} of mpirun, ", counted(step.tasks.size(), "rank"));
      case StepKind::local:
        return fmt::format("{}, no step, ", counted(step.tasks.size(), "process"));
    }
    return "";
  }

  void heading(const Step& step, const std::string& right) {
    const std::string at = step.line > 0 ? fmt::format("line {}: ", step.line) : "";
    std::string left =
        at + cut(printable(step.command), kHeadWidth - 40) + (step.background ? " &" : "");
    const std::size_t width = width_of(left);
    const std::size_t gap = width + 2 < 60 ? 60 - width : 3;
    const Colour colour = step.start == StepStart::at_once ? Colour::none
                          : step.start == StepStart::waits ? Colour::yellow
                                                           : Colour::red;
    line(paint_(Colour::bold, left) + std::string(gap, ' ') + paint_(colour, right));
  }

  void single(const Step& step) {
    heading(step, what_it_is(step) + start_text(step));
    if (step.start == StepStart::unknown) {
      line("  " + printable(step.why_uncertain));
    } else if (step.uncertain) {
      line("  it may not run: " + printable(step.why_uncertain));
    }
    if (!step.waits_why.empty()) line("  waits for " + printable(step.waits_why));
    for (const std::string& message : step.messages) line("  " + printable(message));
    if (step.error) refusal_lines(*step.error);
    std::vector<const Task*> tasks;
    for (const Task& task : step.tasks) tasks.push_back(&task);
    if (!tasks.empty()) table(tasks, step.kind != StepKind::step);
    if (step.tasks_not_listed > 0) {
      line(fmt::format("  … {} more, not listed", counted(step.tasks_not_listed, "task")));
    }
    for (const std::string& note : step.notes) line("  " + printable(note));
  }

  void refusal_lines(const Refusal& error) {
    for (const std::string& text : error.lines) line("  " + printable(text));
    if (!error.hint.empty()) hint(error.hint);
  }

  static std::string visible(const Task& task) {
    return task.cuda_visible_devices.value_or("not set");
  }

  static std::vector<std::string> cells(const Task& task) {
    return {std::to_string(task.rank),
            task.node,
            std::to_string(task.local_id),
            task.cpus.ranges(),
            task.gpus.empty() ? "-" : task.gpus.list(),
            visible(task)};
  }

  static void task_columns(Table& table) {
    table.column("rank", Align::right);
    table.column("node");
    table.column("local", Align::right);
    table.column("CPUs");
    table.column("GPUs");
    table.column("CUDA_VISIBLE_DEVICES");
  }

  void table(const std::vector<const Task*>& tasks, bool foreign) {
    Table rows;
    task_columns(rows);
    const bool cut_short = tasks.size() > kMaxRows && !style_.all_tasks;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (cut_short && i == kFirstRows) {
        rows.row({"…", "", "", "", "", ""});
        i = tasks.size() - kLastRows;
      }
      rows.row(cells(*tasks[i]));
    }
    out_ += rows.text("  ");
    if (cut_short) {
      line(fmt::format("  {} of {} shown; --all shows every one", kFirstRows + kLastRows,
                       counted(tasks.size(), "rank")));
    }
    for (const Task* task : tasks) {
      for (const std::string& message : task->messages) {
        line(fmt::format("  rank {}: {}", task->rank, printable(message)));
      }
    }
    const bool unset = !tasks.front()->cuda_visible_devices;
    if (foreign && unset && !job_gpus().empty()) {
      line(
          "  CUDA_VISIBLE_DEVICES is not set for them: nothing tells the ranks which GPUs are "
          "theirs");
    }
  }

  [[nodiscard]] std::string job_gpus() const {
    return e_.nodes.empty() ? "" : gpus_text(e_.nodes.front().gpus);
  }

  /// How a step of a loop starts, seen from the loop's earlier steps.
  enum class Turn { at_once, after_wait, waits };

  /// A step that starts at once, but beside which an earlier one of its loop no longer runs, stood
  /// behind a `wait` of the script.
  [[nodiscard]] Turn turn_of(std::size_t begin, std::size_t i) const {
    const Step& step = e_.steps[i];
    if (step.start != StepStart::at_once) return Turn::waits;
    for (std::size_t k = begin; k < i; ++k) {
      const auto& id = e_.steps[k].id;
      if (!id || std::ranges::find(step.beside, *id) == step.beside.end()) return Turn::after_wait;
    }
    return Turn::at_once;
  }

  /// Whether two steps of the loop ever run at the same time, or one waits for room.
  [[nodiscard]] bool meet(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (e_.steps[i].start != StepStart::at_once) return true;
      for (std::size_t k = begin; k < i; ++k) {
        const auto& id = e_.steps[k].id;
        const auto& beside = e_.steps[i].beside;
        if (id && std::ranges::find(beside, *id) != beside.end()) return true;
      }
    }
    return false;
  }

  /// "4 at once, 1 waits, 2 after the wait".
  [[nodiscard]] static std::string turns_text(const std::vector<Turn>& turns) {
    const auto count = [&](Turn turn) { return std::ranges::count(turns, turn); };
    if (count(Turn::at_once) == std::ssize(turns)) return "side by side";
    std::string out = fmt::format("{} at once", count(Turn::at_once));
    if (const auto n = count(Turn::waits)) {
      out += n == 1 ? ", 1 waits" : fmt::format(", {} wait", n);
    }
    if (const auto n = count(Turn::after_wait)) out += fmt::format(", {} after the wait", n);
    return out;
  }

  /// Steps of one line (a loop), one row each.
  void repeated(std::size_t begin, std::size_t end) {
    const Step& first = e_.steps[begin];
    const std::size_t count = end - begin;
    const bool in_turn = !first.background || !meet(begin, end);
    std::vector<Turn> turns;
    for (std::size_t i = begin; i < end; ++i) {
      turns.push_back(in_turn ? Turn::at_once : turn_of(begin, i));
    }
    const std::string right =
        fmt::format("{} steps, {}", count, in_turn ? "one after another" : turns_text(turns));
    heading(first, right);
    for (const std::string& message : first.messages) line("  " + printable(message));
    Table rows;
    rows.column("step", Align::right);
    task_columns(rows);
    rows.column("starts");
    const bool cut_short = count > kMaxRows && !style_.all_tasks;
    for (std::size_t i = begin; i < end; ++i) {
      if (cut_short && i == begin + kFirstRows) {
        rows.row({"…", "", "", "", "", "", "", ""});
        i = end - kLastRows;
      }
      const Step& step = e_.steps[i];
      std::vector<std::string> row = cells(step.tasks.front());
      row.insert(row.begin(), step.id ? std::to_string(*step.id) : "-");
      if (turns[i - begin] == Turn::after_wait) {
        row.emplace_back("after the wait");
      } else if (step.start == StepStart::waits && !step.waits_for.empty()) {
        row.push_back("after " + steps_named(step.waits_for));
      } else {
        row.push_back(step.start == StepStart::at_once ? "at once" : start_text(step));
      }
      rows.row(std::move(row));
    }
    out_ += rows.text("  ");
  }

  // ---- findings

  /// The findings that only repeat why all is refused, which stands at the top.
  [[nodiscard]] bool told_above(const lint::Finding& finding) const {
    if (!e_.error || e_.accepted) return false;
    return finding.code == "B299" || finding.code == "B699" ||
           (finding.code == "B502" && finding.line == 0);
  }

  /// ", line 3", ", lines 3-6".
  static std::string where_of(const lint::Finding& finding) {
    if (finding.line == 0) return "";
    if (finding.lines.size() < 2) return fmt::format(", line {}", finding.line);
    Bits lines;
    for (const int each : finding.lines) lines.set(static_cast<std::size_t>(each));
    return fmt::format(", lines {}", lines.ranges());
  }

  void findings() {
    for (const lint::Finding& finding : e_.findings) {
      if (told_above(finding)) continue;
      line("");
      const Colour colour = finding.level == lint::Level::error     ? Colour::red
                            : finding.level == lint::Level::warning ? Colour::yellow
                                                                    : Colour::cyan;
      line(paint_(colour, fmt::format("{} {}{}:", lint::level_name(finding.level), finding.code,
                                      where_of(finding))) +
           " " + printable(finding.text));
      if (!finding.hint.empty()) hint(finding.hint);
    }
  }

  void notes() {
    if (!e_.notes.empty()) line("");
    for (const std::string& note : e_.notes) line(paint_(Colour::dim, "(" + printable(note) + ")"));
  }

  const Explanation& e_;
  const Style& style_;
  Painter paint_;
  std::string out_;
  std::size_t label_width_ = 0;
};

}  // namespace

std::string render_text(const Explanation& explanation, const Style& style) {
  return Writer(explanation, style).run();
}

}  // namespace berth::explain
