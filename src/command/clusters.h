// -M/--clusters of the listing commands: there is one cluster, and it may be named.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::command {

/// Refuses any name but this cluster's and "all", with Slurm's lines.
Result<void> check_clusters(const std::optional<std::string>& asked, std::string_view cluster);

}  // namespace berth::command
