// Licences as they are written: "matlab:2,cad".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::text {

using LicenseCounts = std::map<std::string, std::uint64_t>;

/// Counts by name, 1 where there is none. An error names what cannot be read.
Result<LicenseCounts> parse_licenses(std::string_view text);
/// "cad:1,matlab:2".
std::string license_text(const LicenseCounts& counts);

}  // namespace berth::text
