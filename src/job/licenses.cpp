#include "job/licenses.h"

#include "reservation/reservation.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::job {

LicenseCounts license_counts(std::string_view text) {
  LicenseCounts out;
  for (std::string_view item : text::split(text, ',')) {
    item = text::trim(item);
    if (item.empty()) continue;
    const auto colon = item.find_first_of(":=");
    const auto count = colon == item.npos ? std::optional<std::uint64_t>(1)
                                          : text::parse_number(item.substr(colon + 1));
    out[std::string(item.substr(0, colon))] += count.value_or(1);
  }
  return out;
}

std::vector<LicenseCounts> license_choices(std::string_view text) {
  std::vector<LicenseCounts> out;
  for (const std::string_view part : text::split(text, '|')) {
    if (LicenseCounts counts = license_counts(part); !counts.empty()) {
      out.push_back(std::move(counts));
    }
  }
  return out;
}

std::string license_text(const LicenseCounts& counts) {
  return reservation::license_text(counts);
}

}  // namespace berth::job
