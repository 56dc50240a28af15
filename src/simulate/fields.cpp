#include "simulate/fields.h"

#include <charconv>
#include <cmath>

#include "simulate/trace.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::simulate {

bool Lines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  ++number_;
  const std::size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

void split_blanks(std::string_view line, std::vector<std::string_view>& out) {
  out.clear();
  constexpr std::string_view kBlanks = " \t";
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = line.find_first_of(kBlanks, at);
    out.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
}

void split_at(std::string_view line, char separator, std::size_t most,
              std::vector<std::string_view>& out) {
  out.clear();
  while (out.size() < most) {
    const std::size_t end = line.find(separator);
    out.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

std::optional<double> real_of(std::string_view text) {
  constexpr double kMost = 1e15;
  double value = 0;
  const auto [end, wrong] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (wrong != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return std::fmin(std::fmax(value, -kMost), kMost);
}

std::optional<std::int64_t> whole_of(std::string_view text) {
  const auto value = real_of(text);
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(std::floor(*value));
}

std::optional<std::uint64_t> megabytes_of(std::string_view text) {
  if (text.empty()) return std::nullopt;
  double factor = 1;
  constexpr std::string_view kUnits = "KMGTP";
  const char last = text.back() >= 'a' ? static_cast<char>(text.back() - 32) : text.back();
  if (const auto unit = kUnits.find(last); unit != std::string_view::npos) {
    factor = std::pow(1024.0, static_cast<double>(unit) - 1);
    text.remove_suffix(1);
  }
  const auto value = real_of(text);
  if (!value || *value < 0) return std::nullopt;
  const double megabytes = std::ceil(*value * factor);
  constexpr double kMost = 4503599627370496.0;  // what --mem takes
  if (megabytes > kMost) return std::nullopt;
  return static_cast<std::uint64_t>(megabytes);
}

namespace {

/// Days since 1970-01-01 of a date of the Gregorian calendar.
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t era = y / 400;
  const std::int64_t of_era = y - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

std::optional<std::int64_t> digits(std::string_view text, std::int64_t most) {
  const auto value = text::parse_number(text, static_cast<std::uint64_t>(most));
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

}  // namespace

std::optional<std::int64_t> moment_of(std::string_view text) {
  if (const auto seconds = digits(text, kMostSeconds)) return seconds;
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  const auto year = digits(text.substr(0, 4), 9999);
  const auto month = digits(text.substr(5, 2), 12);
  const auto day = digits(text.substr(8, 2), 31);
  const auto hour = digits(text.substr(11, 2), 23);
  const auto minute = digits(text.substr(14, 2), 59);
  const auto second = digits(text.substr(17, 2), 60);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (*year < 1970 || *month == 0 || *day == 0) return std::nullopt;
  return days_of(*year, *month, *day) * 86400 + *hour * 3600 + *minute * 60 + *second;
}

std::optional<std::int64_t> elapsed_of(std::string_view text) {
  std::int64_t days = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto value = digits(text.substr(0, dash), 1'000'000);
    if (!value) return std::nullopt;
    days = *value;
    text.remove_prefix(dash + 1);
  }
  if (const auto dot = text.find('.'); dot != std::string_view::npos) text = text.substr(0, dot);
  std::int64_t seconds = 0;
  std::vector<std::string_view> parts;
  split_at(text, ':', 4, parts);
  if (parts.size() > 3) return std::nullopt;
  for (const std::string_view part : parts) {
    const auto value = digits(part, 1'000'000'000);
    if (!value) return std::nullopt;
    seconds = seconds * 60 + *value;
  }
  return days * 86400 + seconds;
}

}  // namespace berth::simulate
