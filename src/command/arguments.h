// The command line of `berth explain`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "request/request.h"

namespace berth::command {

struct ExplainArguments {
  bool help = false;
  bool json = false;
  bool all = false;
  bool verbose = false;
  std::optional<std::string> conf;     // --conf: a directory, or the slurm.conf in it
  std::optional<std::string> emulate;  // --emulate
  std::vector<std::string> busy;       // --busy, may be given several times
  /// What is explained: a command after "--", or `sbatch SCRIPT [ARGS…]`.
  request::Command command = request::Command::sbatch;
  std::vector<std::string> words;
  bool is_script = true;  // words[0] is a script that was named directly
};

/// `words` are those after "explain".
Result<ExplainArguments> parse_explain(std::span<const std::string> words);

}  // namespace berth::command
