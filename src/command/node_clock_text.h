// How the clock of a node is off, in words, for scontrol and sinfo.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "wire/info.pb.h"

namespace berth::command {

/// "3600 s ahead", "3600 s behind"; "" = it is right.
inline std::string clock_words(const wire::NodeInfo& node) {
  const long long ahead = node.clock_ahead_seconds();
  if (ahead == 0) return {};
  return fmt::format("{} s {}", std::llabs(ahead), ahead > 0 ? "ahead" : "behind");
}

}  // namespace berth::command
