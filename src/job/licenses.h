// What --licenses asks for: "a:2,b" is both, "a|b:2" the first of them that is free.
#pragma once

#include <string_view>
#include <vector>

#include "text/licenses.h"

namespace berth::job {

using text::license_text;
using text::LicenseCounts;

/// Counts by name of what stands between two '|', which could be read when it was submitted.
LicenseCounts license_counts(std::string_view text);
/// One after the other is tried; none for "".
std::vector<LicenseCounts> license_choices(std::string_view text);
/// The same where it is not known whether it can be read.
Result<std::vector<LicenseCounts>> parse_license_choices(std::string_view text);

}  // namespace berth::job
