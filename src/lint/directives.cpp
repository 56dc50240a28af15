// Rules about the #SBATCH lines of a script: seen or not seen, read whole or cut short.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "lint/rule.h"
#include "text/words.h"

namespace berth::lint {
namespace {

using request::Opt;

std::string first_word(std::string_view text) {
  return std::string(text.substr(0, text.find_first_of(" \t;")));
}

/// "line 9" or "lines 9-12", with what stands there.
std::string which_lines(const std::vector<const Line*>& lines) {
  std::string options;
  for (std::size_t i = 0; i < std::min<std::size_t>(lines.size(), 4); ++i) {
    options += (i == 0 ? "" : ", ") + shortened(lines[i]->options, 40);
  }
  if (lines.size() > 4) options += ", …";
  return lines.size() == 1 ? fmt::format("#SBATCH {}", options)
                           : fmt::format("{} directives from here on ({})", lines.size(), options);
}

void report_late(const Facts& facts, bool after_set, Report& report) {
  std::vector<const Line*> late;
  for (const Line& line : facts.lines.marked) {
    if (line.kind == LineKind::late) late.push_back(&line);
  }
  if (late.empty() || !facts.lines.first_command) return;
  const std::string& command = facts.lines.first_command_text;
  if ((first_word(command) == "set") != after_set) return;
  report.add(late.front()->number,
             fmt::format("{} will not be seen: reading stops at the first command, line {}: {}",
                         which_lines(late), *facts.lines.first_command, shortened(command)),
             fmt::format("move the #SBATCH lines above line {}", *facts.lines.first_command));
}

void find_late(const Facts& facts, Report& report) {
  report_late(facts, false, report);
}
void find_after_set(const Facts& facts, Report& report) {
  report_late(facts, true, report);
}

/// One finding for each line of a kind that only looks like a directive.
void report_lookalikes(const Facts& facts, LineKind kind, std::string_view why, Report& report) {
  for (const Line& line : facts.lines.marked) {
    if (line.kind != kind) continue;
    report.add(line.number,
               fmt::format("{} is a comment to sbatch: {}.", shortened(line.options, 40), why),
               fmt::format("#SBATCH {}", line.options));
  }
}

void find_indented(const Facts& facts, Report& report) {
  report_lookalikes(facts, LineKind::indented, "#SBATCH must stand at the start of the line",
                    report);
}
void find_spaced(const Facts& facts, Report& report) {
  report_lookalikes(facts, LineKind::spaced, "a blank stands between # and SBATCH", report);
}
void find_doubled(const Facts& facts, Report& report) {
  report_lookalikes(facts, LineKind::doubled, "it begins with more than one #", report);
}
void find_wrong_case(const Facts& facts, Report& report) {
  report_lookalikes(facts, LineKind::wrong_case, "SBATCH must be in capitals", report);
}

bool separates_components(const std::vector<std::string>& words) {
  return !words.empty() && (words.front() == "hetjob" || words.front() == "packjob");
}

/// The line with the loose words joined to the value before them.
std::string joined_line(const std::vector<std::string>& words, std::size_t plain) {
  std::vector<std::string> out(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(plain));
  std::string value = words[plain];
  std::size_t next = plain + 1;
  while (next < words.size() && !words[next].starts_with('-')) value += " " + words[next++];
  if (!out.empty() && (value.starts_with("= ") || out.back().ends_with('='))) {
    // "--nodes = 2", "--nodes= 2": only the blanks are wrong.
    std::erase(value, ' ');
    out.back() += value;
  } else if (!out.empty()) {
    std::string& last = out.back();
    const std::size_t equals = last.find('=');
    const std::size_t at = equals == std::string::npos ? 0 : equals + 1;
    last = fmt::format("{}\"{} {}\"", last.substr(0, at), last.substr(at), value);
  }
  out.insert(out.end(), words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  return fmt::format("#SBATCH {}", fmt::join(out, " "));
}

void find_cut_by_blank(const Facts& facts, Report& report) {
  for (const Line& line : facts.lines.marked) {
    if (line.kind != LineKind::directive || separates_components(line.words)) continue;
    std::optional<std::size_t> plain =
        read_options(line.words, request::Command::sbatch).first_plain;
    // "--nodes = 2": the value that getopt sees is "=".
    const auto equals = std::ranges::find(line.words, "=");
    if (equals != line.words.end()) plain = static_cast<std::size_t>(equals - line.words.begin());
    if (!plain || *plain == 0) continue;
    report.add(
        line.number,
        equals != line.words.end()
            ? "No blanks may stand around \"=\": sbatch takes the sign itself for the value."
            : fmt::format("The value before \"{}\" ends at the blank, and sbatch refuses the "
                          "word that is left over.",
                          shortened(line.words[*plain], 30)),
        joined_line(line.words, *plain));
  }
}

void find_cut_by_hash(const Facts& facts, Report& report) {
  for (const Line& line : facts.lines.marked) {
    if (line.kind != LineKind::directive || line.cut_off.empty()) continue;
    const std::size_t equals = line.cut_word.find('=');
    const std::size_t value = equals == std::string::npos ? 0 : equals + 1;
    report.add(
        line.number,
        fmt::format("\"{}\" is cut off as a comment: sbatch reads {}", shortened(line.cut_off, 30),
                    shortened(line.cut_word, 40)),
        fmt::format("{}\"{}{}\"      (or a blank before the #)", line.cut_word.substr(0, value),
                    line.cut_word.substr(value), first_word(line.cut_off)));
  }
}

void find_no_interpreter(const Facts& facts, Report& report) {
  if (!facts.batch || facts.lines.has_interpreter) return;
  report.add(
      1,
      facts.lines.byte_order_mark
          ? "The file begins with a UTF-8 byte order mark, so sbatch does not see the #! and "
            "refuses it."
          : "The first line does not begin with #!, so sbatch refuses the script.",
      facts.lines.byte_order_mark ? "save the file as UTF-8 without a mark" : "#!/bin/bash");
}

void find_dos_breaks(const Facts& facts, Report& report) {
  if (!facts.lines.dos_breaks) return;
  const std::string name = facts.input.script_name.empty() ? "SCRIPT" : facts.input.script_name;
  report.add(1, "The lines end in DOS line breaks (\\r\\n), so sbatch refuses the script.",
             fmt::format("sed -i 's/\\r$//' {}", name));
}

void find_not_expanded(const Facts& facts, Report& report) {
  for (const Written& option : facts.written) {
    if (option.line == 0) continue;
    const std::size_t dollar = option.value.find('$');
    const bool last = dollar == std::string::npos || dollar + 1 == option.value.size();
    const char next = last ? ' ' : option.value[dollar + 1];
    const bool variable = (next == '{' || next == '(' || next == '_' ||
                           (next >= 'A' && next <= 'Z') || (next >= 'a' && next <= 'z'));
    const bool home = option.value.starts_with("~/");
    if (!variable && !home) continue;
    const std::string shown = fmt::format("--{}={}", long_name(option.opt), option.value);
    report.add(
        option.line,
        fmt::format("{} is taken as written: sbatch expands no {} in #SBATCH lines.",
                    shortened(shown), home ? "~" : "variables"),
        fmt::format("a literal value, a pattern (%j job id, %x job name, %u user), or on the "
                    "command line:  sbatch {} {}",
                    shortened(shown),
                    facts.input.script_name.empty() ? "SCRIPT" : facts.input.script_name));
  }
}

void find_twice(const Facts& facts, Report& report) {
  std::map<Opt, const Written*> seen;
  const bool several_components = std::ranges::any_of(
      facts.lines.marked, [](const Line& line) { return separates_components(line.words); });
  if (several_components) return;
  for (const Written& option : facts.written) {
    if (option.line == 0) continue;
    const auto [at, added] = seen.try_emplace(option.opt, &option);
    if (!added && at->second->value != option.value) {
      report.add(option.line,
                 fmt::format("--{0}={1} replaces --{0}={2} of line {3}.", long_name(option.opt),
                             option.value, at->second->value, at->second->line),
                 fmt::format("remove one of the two lines"));
      at->second = &option;
    }
  }
}

void find_typographic_dash(const Facts& facts, Report& report) {
  constexpr std::array<std::string_view, 3> kDashes = {"\u2013", "\u2014", "\u2212"};
  for (const Line& line : facts.lines.marked) {
    if (line.kind != LineKind::directive) continue;
    for (const std::string& word : line.words) {
      const auto dash = std::ranges::find_if(
          kDashes, [&](std::string_view each) { return word.starts_with(each); });
      if (dash == kDashes.end()) continue;
      report.add(line.number,
                 fmt::format("{} begins with a typographic dash ({}), not with a hyphen, and is "
                             "refused.",
                             shortened(word, 40), *dash),
                 fmt::format("#SBATCH --{}", word.substr(dash->size())));
      break;
    }
  }
}

void find_unknown(const Facts& facts, Report& report) {
  for (const Line& line : facts.lines.marked) {
    if (line.kind != LineKind::directive) continue;
    for (const std::string& word : read_options(line.words, request::Command::sbatch).unknown) {
      const std::string bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
      const std::string name = bare.substr(0, bare.find('='));
      const std::string near = nearest_name(name);
      const std::string value = bare.substr(std::min(bare.size(), name.size()));
      report.add(line.number, fmt::format("sbatch has no option {}.", shortened(word, 40)),
                 near.empty() ? "sbatch --help lists the options"
                              : fmt::format("#SBATCH --{}{}", near, value));
    }
  }
}

void find_overridden(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    for (const auto& [opt, given] : job.request->given.all()) {
      if (given.level != request::Level::environment) continue;
      const auto directive = std::ranges::find_if(
          facts.written,
          [&, wanted = opt](const Written& w) { return w.opt == wanted && w.line != 0; });
      if (directive == facts.written.end() || directive->value == given.text) continue;
      report.add(directive->line,
                 fmt::format("{}={} in your environment replaces --{}={}.", given.variable,
                             given.text, long_name(opt), directive->value),
                 fmt::format("unset {}", given.variable));
    }
  }
}

void find_refused(const Facts& facts, Report& report) {
  const Error* error = facts.input.parse_error;
  if (error == nullptr || report.error_found()) return;
  report.add(0, fmt::format("It is refused: {}", error->what()), error->hint);
}

constexpr std::array<Entry, 16> kDirectivesRules = {{
    {{"B201", Level::warning, "A directive after the first command is not seen",
      "sbatch stops reading #SBATCH lines at the first line that is neither blank nor a comment.",
      "module load cuda\n#SBATCH --gres=gpu:4", "#SBATCH --gres=gpu:4\nmodule load cuda"},
     find_late},
    {{"B202", Level::warning, "Directives after `set` are not seen",
      "set -e or set -euo pipefail is a command: every #SBATCH line below it is a comment.",
      "#!/bin/bash\nset -euo pipefail\n#SBATCH --gres=gpu:4",
      "#!/bin/bash\n#SBATCH --gres=gpu:4\nset -euo pipefail"},
     find_after_set},
    {{"B203", Level::warning, "An indented directive is a comment",
      "#SBATCH counts only at the very start of a line.", "  #SBATCH --gres=gpu:4",
      "#SBATCH --gres=gpu:4"},
     find_indented},
    {{"B204", Level::warning, "`# SBATCH` is a comment",
      "There must be no blank between # and SBATCH.", "# SBATCH --gres=gpu:4",
      "#SBATCH --gres=gpu:4"},
     find_spaced},
    {{"B205", Level::note, "`##SBATCH` is a comment",
      "Often meant so. When the option is wanted, one # must go.", "##SBATCH --gres=gpu:4",
      "#SBATCH --gres=gpu:4"},
     find_doubled},
    {{"B206", Level::warning, "`#sbatch` is a comment", "SBATCH must be written in capitals.",
      "#sbatch --gres=gpu:4", "#SBATCH --gres=gpu:4"},
     find_wrong_case},
    {{"B207", Level::error, "A value ends at an unquoted blank",
      "Words of a directive are split at blanks. What is left over is no option, and sbatch "
      "refuses "
      "the script: \"Invalid directive found in batch script\".",
      "#SBATCH --job-name=my job", "#SBATCH --job-name=\"my job\""},
     find_cut_by_blank},
    {{"B208", Level::warning, "A value is cut short by #",
      "An unquoted # begins a comment, even inside a word.", "#SBATCH --job-name=run#3",
      "#SBATCH --job-name=\"run#3\""},
     find_cut_by_hash},
    {{"B209", Level::error, "The script has no interpreter line",
      "The first two bytes of a batch script must be #!.", "srun hostname",
      "#!/bin/bash\nsrun hostname"},
     find_no_interpreter},
    {{"B210", Level::error, "The script has DOS line breaks",
      "A script that was edited on Windows ends its lines in \\r\\n; sbatch refuses it.", "",
      "sed -i 's/\\r$//' job.sh"},
     find_dos_breaks},
    {{"B211", Level::error, "There is no such option",
      "The option is unknown to sbatch. The finding names the most similar one.",
      "#SBATCH --gpu-per-task=1", "#SBATCH --gpus-per-task=1"},
     find_unknown},
    {{"B212", Level::warning, "Variables are not expanded in directives",
      "#SBATCH lines are read by sbatch, not by a shell: $HOME, $USER and ~ stay as they are.",
      "#SBATCH --output=$HOME/run.out", "#SBATCH --output=/home/alice/run.out"},
     find_not_expanded},
    {{"B213", Level::warning, "An option is given twice", "The last one counts.",
      "#SBATCH --nodes=2\n#SBATCH --nodes=4", "#SBATCH --nodes=4"},
     find_twice},
    {{"B214", Level::error, "A dash is not a hyphen",
      "Text copied from a web page or a word processor often has a long dash where two hyphens "
      "belong.",
      "#SBATCH \u2013nodes=2", "#SBATCH --nodes=2"},
     find_typographic_dash},
    {{"B215", Level::warning, "The environment overrides a directive",
      "SBATCH_PARTITION, SBATCH_TIMELIMIT and their relatives beat #SBATCH lines.", "",
      "unset SBATCH_PARTITION"},
     find_overridden},
    {{"B299", Level::error, "The request is refused by the command",
      "No other rule had a better explanation: this is the message of sbatch, srun or salloc.", "",
      ""},
     find_refused},
}};

}  // namespace

std::span<const Entry> directive_rules() {
  return kDirectivesRules;
}

}  // namespace berth::lint
