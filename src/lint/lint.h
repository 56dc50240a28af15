// What is wrong with a script: what it asks for against what it will get. Pure: the caller reads
// the script, parses, places and hands over what it has; a rule that needs a part which is missing
// (the script was refused, no cluster is known) keeps quiet.
//
// Three levels: an error will be refused, fail or never start; a warning will not do what it seems
// to; a note could do better. Rules speak about what is wrong and never about what is fine.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "place/place.h"
#include "place/step.h"
#include "request/request.h"
#include "script/script.h"

namespace berth::lint {

enum class Level { error, warning, note };
std::string_view level_name(Level level);  // "error", "warning", "note"

struct Finding {
  std::string code;  // "B104"
  Level level = Level::warning;
  int line = 0;      // in the script, from 1; 0 = no line (an option of the command line)
  std::string text;  // what was asked and what will happen; whole sentences
  std::string hint;  // the line to write instead; "" when there is none; may have several lines
  std::vector<int> lines = {};  // all lines it was found on, `line` first; empty without a line
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// One launcher command of the script with what became of it. For the single srun of
/// `berth explain -- srun …`, `command` is null.
struct StepSeen {
  const script::Command* command = nullptr;
  const request::Request* request = nullptr;  // the srun as parsed inside the job; null: not an
                                              // srun, or its parsing failed
  const place::StepPlan* plan = nullptr;      // null: not an srun, or it was not planned. A step
                                              // that had to wait has verdict `waits`, or, planned
  // again at its start, waits_for_steps of the first try
  const Error* error = nullptr;  // why its parsing failed
};

struct Input {
  std::string_view script;               // text of the batch script; "" for srun and salloc lines
  std::string script_name;               // as the user named it, for hints; may be ""
  std::vector<std::string> arguments;    // options given to sbatch, srun or salloc itself
  const script::Script* read = nullptr;  // the launcher commands after expansion
  const std::vector<request::Request>* components = nullptr;  // null: parsing failed
  const Error* parse_error = nullptr;
  const cluster::Cluster* cluster = nullptr;
  const std::vector<place::JobPlan>* plans = nullptr;  // one for each component, same order
  std::vector<StepSeen> steps;                         // launcher commands in order of execution
  request::Environment environment;                    // of the caller
  /// Whether a directory exists where berth runs. Unset: not checked.
  std::function<bool(const std::string&)> directory_exists;
};

/// All findings: errors first, then warnings, then notes; inside a level by line, then code. The
/// same code is reported once for a line, and what is said word for word about several lines is one
/// finding. At most kMaxFindings.
std::vector<Finding> check(const Input& input);

inline constexpr std::size_t kMaxFindings = 200;

/// A rule as documented: docs/lint.md is made from this table.
struct Rule {
  std::string_view code;
  Level level;                   // the highest level it reports at
  std::string_view title;        // a short sentence
  std::string_view explanation;  // one paragraph
  std::string_view wrong;        // a script or line that triggers it; "" when it needs a cluster
  std::string_view right;        // what to write instead
};
std::span<const Rule> rules();
const Rule* find_rule(std::string_view code);

/// The text of docs/lint.md.
std::string document();

}  // namespace berth::lint
