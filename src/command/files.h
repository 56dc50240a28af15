// Reading whole files, bounded: what is too long, binary or not a file is an error, never a
// surprise.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace berth::command {

/// The text of a file; "-" is standard input. At most `limit` bytes.
Result<std::string> read_file(const std::string& path, std::size_t limit);

bool is_directory(const std::string& path);
/// Why the file cannot be read ("cannot read X: No such file or directory"); unset: it can.
std::optional<Error> why_unreadable(const std::string& path);

}  // namespace berth::command
