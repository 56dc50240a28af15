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
  /// At a lower level than the rule's own.
  void add(Level level, int line, std::string text, std::string hint = {}) {
    if (findings_->size() >= kMaxFindings) return;
    findings_->push_back(
        {std::string(rule_->code), level, line, std::move(text), std::move(hint)});
  }
  /// Whether some rule before this one found an error (for the catch-all rules).
  [[nodiscard]] bool error_found() const;

 private:
  const Rule* rule_;
  std::vector<Finding>* findings_;
};

struct Entry {
  Rule rule;
  void (*find)(const Facts&, Report&);
};

std::span<const Entry> gpu_name_rules();   // gpu_names.cpp   B101-B103, B109
std::span<const Entry> gpu_rules();        // gpus.cpp        B104-B12x
std::span<const Entry> directive_rules();  // directives.cpp  B2xx
std::span<const Entry> task_rules();       // tasks.cpp       B3xx
std::span<const Entry> launcher_rules();   // launchers.cpp   B4xx
std::span<const Entry> step_rules();       // steps.cpp       B5xx
std::span<const Entry> limit_rules();      // limits.cpp      B6xx
std::span<const Entry> file_rules();       // files.cpp       B7xx

}  // namespace berth::lint
