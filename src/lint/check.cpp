// Runs every rule and puts the findings in order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "lint/rule.h"

namespace berth::lint {
namespace {

/// All rules by code.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> kAll = [] {
    std::vector<Entry> all;
    for (const auto group : {gpu_name_rules(), gpu_sharing_rules(), gpu_binding_rules(),
                             directive_rules(), task_rules(), launcher_rules(), step_rules(),
                             place_rules(), limit_rules(), file_rules()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    std::ranges::sort(all, {}, [](const Entry& entry) { return entry.rule.code; });
    return all;
  }();
  return kAll;
}

/// The catch-all rules end in 99 and run last, because they speak only when no other rule did.
bool catches_all(const Entry& entry) {
  return entry.rule.code.ends_with("99");
}

/// What is said about several lines in the same words becomes one finding on the first of them.
std::vector<Finding> merged(std::vector<Finding> findings) {
  std::vector<Finding> out;
  for (Finding& each : findings) {
    const auto same = std::ranges::find_if(out, [&](const Finding& before) {
      return before.code == each.code && before.level == each.level && before.text == each.text &&
             before.line > 0 && each.line > 0;
    });
    if (same != out.end()) {
      same->lines.push_back(each.line);
      continue;
    }
    if (each.line > 0) each.lines = {each.line};
    out.push_back(std::move(each));
  }
  return out;
}

}  // namespace

void Report::add(Level level, int line, std::string text, std::string hint) {
  const bool told = std::ranges::any_of(*findings_, [&](const Finding& each) {
    return each.code == rule_->code && each.line == line;
  });
  if (told || findings_->size() >= kMaxFindings) return;
  findings_->push_back(
      {std::string(rule_->code), level, line, std::move(text), std::move(hint), {}});
}

bool Report::error_found() const {
  return std::ranges::any_of(*findings_,
                             [](const Finding& each) { return each.level == Level::error; });
}

bool Report::found(std::string_view code) const {
  return std::ranges::any_of(*findings_, [&](const Finding& each) { return each.code == code; });
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::error:
      return "error";
    case Level::warning:
      return "warning";
    case Level::note:
      return "note";
  }
  return "";
}

std::vector<Finding> check(const Input& input) {
  const Facts facts(input);
  std::vector<Finding> findings;
  for (const bool last : {false, true}) {
    for (const Entry& entry : entries()) {
      if (catches_all(entry) != last) continue;
      Report report(entry.rule, findings);
      entry.find(facts, report);
    }
  }
  std::ranges::sort(findings, {}, [](const Finding& each) {
    return std::tuple(each.level, each.line, std::string_view(each.code));
  });
  return merged(std::move(findings));
}

std::span<const Rule> rules() {
  static const std::vector<Rule> kRules = [] {
    std::vector<Rule> list;
    for (const Entry& entry : entries()) list.push_back(entry.rule);
    return list;
  }();
  return kRules;
}

const Rule* find_rule(std::string_view code) {
  const auto at = std::ranges::find(rules(), code, &Rule::code);
  return at == rules().end() ? nullptr : &*at;
}

}  // namespace berth::lint
