// Who uses a store: one controller, or one program that checks, restores or repairs it.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace berth::store {

/// Held until the descriptor is closed. Makes directory and file, for their modes: -wal and -shm
/// get the mode of the database.
Result<Fd> claim_store(const std::string& directory);

}  // namespace berth::store
