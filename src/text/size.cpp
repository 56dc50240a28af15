// What size.h promises.
#include "text/size.h"

#include <array>

#include "text/number.h"
#include "text/words.h"

namespace berth::text {
namespace {

constexpr std::uint64_t kMaxMb = std::uint64_t{1} << 52;

}  // namespace

std::optional<std::uint64_t> parse_size_mb(std::string_view s) {
  std::size_t digits = 0;
  while (digits < s.size() && s[digits] >= '0' && s[digits] <= '9') ++digits;
  const auto number = parse_number(s.substr(0, digits));
  if (!number) return std::nullopt;
  std::string unit = to_lower(s.substr(digits));
  if (unit.size() == 2 && unit[1] == 'b') unit.pop_back();
  if (unit.size() > 1) return std::nullopt;
  std::uint64_t factor = 1;
  switch (unit.empty() ? 'm' : unit[0]) {
    case 'k':
      return *number / 1024 + (*number % 1024 != 0 ? 1 : 0);
    case 'm':
      break;
    case 'g':
      factor = 1024;
      break;
    case 't':
      factor = 1024 * 1024;
      break;
    default:
      return std::nullopt;
  }
  if (*number > kMaxMb / factor) return std::nullopt;
  return *number * factor;
}

std::string format_mb(std::uint64_t mb) {
  if (mb == 0) return "0";
  constexpr std::array kUnits = {'M', 'G', 'T', 'P', 'E'};
  std::size_t unit = 0;
  while (mb % 1024 == 0 && unit + 1 < kUnits.size()) {
    mb /= 1024;
    ++unit;
  }
  return std::to_string(mb) + kUnits[unit];
}

}  // namespace berth::text
