#include "text/licenses.h"

#include <fmt/format.h>

#include "text/number.h"
#include "text/words.h"

namespace berth::text {

Result<LicenseCounts> parse_licenses(std::string_view text) {
  LicenseCounts out;
  for (std::string_view item : split(text, ',')) {
    item = trim(item);
    if (item.empty()) continue;
    const auto colon = item.find_first_of(":=");
    const auto count = colon == item.npos ? std::optional<std::uint64_t>(1)
                                          : parse_number(item.substr(colon + 1), UINT32_MAX);
    if (colon == 0 || !count || *count == 0) {
      return fail(Code::bad_value, "Invalid license specification",
                  fmt::format("{} is not name:count, with a count from 1 to {}", item, UINT32_MAX));
    }
    out[std::string(item.substr(0, colon))] += *count;
  }
  return out;
}

std::string license_text(const LicenseCounts& counts) {
  std::string out;
  for (const auto& [name, count] : counts) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", name, count);
  }
  return out;
}

}  // namespace berth::text
