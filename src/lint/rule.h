// How a rule is written: what it is called and the function that finds it. The rules are grouped in
// files by idea; check.cpp runs them in the order of their codes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lint/facts.h"
#include "lint/lint.h"

namespace berth::lint {

/// Where the findings of one rule go.
class Report {
 public:
  Report(const Rule& rule, std::vector<Finding>& findings) : rule_(&rule), findings_(&findings) {}

  void add(int line, std::string text, std::string hint = {}) {
    add(rule_->level, line, std::move(text), std::move(hint));
  }
  /// At a lower level than the rule's own. What was said about a line is not said again.
  void add(Level level, int line, std::string text, std::string hint = {});
  /// Whether some rule before this one found an error (for the catch-all rules).
  [[nodiscard]] bool error_found() const;
  /// Whether the rule `code` found something before.
  [[nodiscard]] bool found(std::string_view code) const;

 private:
  const Rule* rule_;
  std::vector<Finding>* findings_;
};

struct Entry {
  Rule rule;
  void (*find)(const Facts&, Report&);
};

// B1xx
std::span<const Entry> gpu_name_rules();     // gpu_names.cpp
std::span<const Entry> gpu_sharing_rules();  // gpu_sharing.cpp
std::span<const Entry> gpu_binding_rules();  // gpu_binding.cpp
// B2xx … B7xx
std::span<const Entry> directive_rules();  // directives.cpp
std::span<const Entry> task_rules();       // tasks.cpp
std::span<const Entry> launcher_rules();   // launchers.cpp
std::span<const Entry> step_rules();       // steps.cpp
std::span<const Entry> place_rules();      // places.cpp
std::span<const Entry> limit_rules();      // limits.cpp
std::span<const Entry> file_rules();       // files.cpp

}  // namespace berth::lint
