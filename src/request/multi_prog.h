// The configuration of srun --multi-prog: which ranks run which program. Read to find the mistakes
// that srun itself reports before anything starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::request {

/// Checks that every rank below `ntasks` has a line and no line names a rank beyond. `content` is
/// nullopt when the file cannot be read. Lines: "0-1,4 program args", "* program"; # is a comment.
Result<void> check_multi_prog(const std::string& file, std::optional<std::string_view> content,
                              std::uint32_t ntasks);

}  // namespace berth::request
