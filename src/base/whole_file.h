// Small files that are there whole or not at all: keys, certificates, lists.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

/// Written beside, synced, then given its name. `path` is absolute or has a directory.
Result<void> write_whole_file(const std::string& path, std::string_view bytes, unsigned mode);

/// So that names given in it (a rename) survive a power cut.
Result<void> sync_directory(const std::string& path);

/// "" when there is none. One that others than its owner may read is an error, and so is one of
/// more than 16 MiB.
Result<std::string> read_private_file(const std::string& path);

}  // namespace berth
