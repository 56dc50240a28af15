// Copies of a store in one file: for backups, and to bring checksums into an old one.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace berth::store {

/// A consistent copy of the database at `from`, its log included, while it may be in use. 0600,
/// with checksums. `from_plain`: `from` has none yet, and nobody uses it.
Result<void> copy_database(const std::string& from, const std::string& to, bool from_plain = false);
/// Statements on a copy that nobody uses; synced.
Result<void> change_copy(const std::string& path, const std::vector<std::string>& statements);

}  // namespace berth::store
