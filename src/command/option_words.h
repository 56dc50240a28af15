// The command lines of squeue, sinfo and their like, read as getopt_long reads them: options and
// operands may be mixed, letters glued, long names cut short while they are unique. Values are not
// looked at.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::command {

enum class Takes {
  nothing,
  value,
  attached,  // an optional value: only "--json=list", "-jlist"
  follows,   // an optional value: also the next word when that is no option
};

struct OptionRow {
  std::string_view name;  // "" = none
  char letter = 0;        // 0 = none
  Takes takes = Takes::nothing;
};

struct GivenOption {
  const OptionRow* row = nullptr;
  std::optional<std::string> value;
};

struct ReadWords {
  std::vector<GivenOption> options;   // in order
  std::vector<std::string> operands;  // the words that are no options
};

/// The error is getopt's own line and `Try "squeue --help" for more information`, exit code 1.
Result<ReadWords> read_options(std::string_view command, std::span<const OptionRow> table,
                               std::span<const std::string> words);

}  // namespace berth::command
