// The words of a `berth bind` line: read by the command itself, and by whoever says beforehand what
// it will do.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::place {

struct BindWords {
  std::optional<std::uint32_t> gpus_per_rank;
  bool verbose = false;
  bool help = false;
  std::vector<std::string> argv;  // the program and its arguments; never empty without help
};

/// `words` begin after "bind".
Result<BindWords> read_bind_words(std::span<const std::string> words);

}  // namespace berth::place
