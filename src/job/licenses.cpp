#include "job/licenses.h"

#include "text/words.h"

namespace berth::job {

LicenseCounts license_counts(std::string_view text) {
  return text::parse_licenses(text).value_or(LicenseCounts{});
}

Result<std::vector<LicenseCounts>> parse_license_choices(std::string_view text) {
  std::vector<LicenseCounts> out;
  for (const std::string_view part : text::split(text, '|')) {
    auto counts = text::parse_licenses(part);
    if (!counts) return pass(std::move(counts.error()));
    if (!counts->empty()) out.push_back(std::move(*counts));
  }
  return out;
}

std::vector<LicenseCounts> license_choices(std::string_view text) {
  return parse_license_choices(text).value_or(std::vector<LicenseCounts>{});
}

}  // namespace berth::job
