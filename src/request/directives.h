// The lines of a batch script that are options: which they are, and the words on them. Scanning
// stops at the first line that is neither blank nor a comment, as sbatch does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "request/getopt.h"
#include "request/parse.h"

namespace berth::request {

/// max_script_size, where slurm.conf does not say; and the most that it can say.
inline constexpr std::size_t kMaxScript = std::size_t{4} << 20;
inline constexpr std::size_t kMostScript = std::size_t{8} << 20;
inline constexpr std::size_t kMaxWarnings = 20;  // about one script

/// The checks sbatch makes on a script before it reads any option from it.
Result<void> check_script(std::string_view script, std::size_t most = kMaxScript);

/// The options of one component of a job, each with the script line it came from.
struct DirectiveOption {
  Occurrence option;
  int line = 0;
};

struct ScriptOptions {
  std::vector<std::vector<DirectiveOption>> components;  // at least one
  std::vector<Message> warnings;
};

/// All #SBATCH lines with their words, `hetjob` lines included. `file` is for error texts.
Result<std::vector<Directive>> find_directives(std::string_view script, std::string_view file,
                                               std::vector<Message>& warnings);

/// The options of all #SBATCH lines, then of #PBS or #BSUB lines unless `ignore_pbs`.
Result<ScriptOptions> script_options(std::string_view script, std::string_view file,
                                     bool ignore_pbs);

/// Options that #PBS or #BSUB lines stand for; what has no counterpart gives a warning.
std::vector<DirectiveOption> translate_foreign(std::string_view script,
                                               std::vector<Message>& warnings);

}  // namespace berth::request
