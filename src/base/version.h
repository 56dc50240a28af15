// What --version prints.
#pragma once

#include <string_view>

namespace berth {

/// `berth --version`.
inline constexpr std::string_view kBerthVersion = "berth 0.1.0 (speaks slurm 26.11.0)";
/// `sbatch --version` and its like: programs parse it.
inline constexpr std::string_view kSlurmVersion = "slurm 26.11.0";

}  // namespace berth
