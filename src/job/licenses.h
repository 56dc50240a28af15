// What --licenses asks for: "a:2,b" is both, "a|b:2" the first of them that is free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::job {

using LicenseCounts = std::map<std::string, std::uint64_t>;

/// Counts by name of what stands between two '|'.
LicenseCounts license_counts(std::string_view text);
/// One after the other is tried; none for "".
std::vector<LicenseCounts> license_choices(std::string_view text);
/// "a:2,b:1".
std::string license_text(const LicenseCounts& counts);

}  // namespace berth::job
