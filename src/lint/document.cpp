// Writes docs/lint.md from the table of rules, so that the page cannot disagree with the program.
#include <fmt/format.h>

#include <array>

#include "lint/lint.h"

namespace berth::lint {
namespace {

struct Chapter {
  std::string_view prefix;
  std::string_view title;
};

constexpr std::array<Chapter, 7> kChapters = {{
    {"B1", "GPUs"},
    {"B2", "Directives"},
    {"B3", "Nodes, tasks and CPUs"},
    {"B4", "Launchers"},
    {"B5", "Steps"},
    {"B6", "What the cluster has and allows"},
    {"B7", "Files"},
}};

std::string block(std::string_view title, std::string_view code) {
  if (code.empty()) return {};
  return fmt::format("{}\n\n```bash\n{}\n```\n\n", title, code);
}

}  // namespace

std::string document() {
  std::string out = fmt::format(
      "<!-- Made from the table of rules in src/lint; BERTH_UPDATE=1 lint_test rewrites it. -->\n"
      "# What `berth explain` finds in a script\n\n"
      "{} rules. An **error** will be refused, fail or never start. A **warning** will not do what "
      "it "
      "seems to.\nA **note** could do better. Each finding names the line, says what will happen "
      "on "
      "this cluster, and gives the\nline to write instead. What is fine is not mentioned.\n\n"
      "| code | level | |\n|---|---|---|\n",
      rules().size());
  for (const Rule& rule : rules()) {
    out += fmt::format("| [{}](#{}) | {} | {} |\n", rule.code, rule.code, level_name(rule.level),
                       rule.title);
  }
  for (const Chapter& chapter : kChapters) {
    out += fmt::format("\n## {}\n", chapter.title);
    for (const Rule& rule : rules()) {
      if (!rule.code.starts_with(chapter.prefix)) continue;
      out += fmt::format("\n### <a id=\"{0}\"></a>{0}: {1}\n\n*{2}.* {3}\n\n", rule.code,
                         rule.title, level_name(rule.level), rule.explanation);
      out += block("Wrong:", rule.wrong) + block("Right:", rule.right);
      while (out.ends_with("\n\n")) out.pop_back();
    }
  }
  return out;
}

}  // namespace berth::lint
