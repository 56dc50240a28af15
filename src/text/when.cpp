// Times as --begin and --deadline write them (options.md §5). The syntax was checked by the parser;
// this gives the moment, in the time zone of the process.
#include "text/when.h"

#include <array>
#include <ctime>
#include <string>
#include <tuple>
#include <utility>

#include "text/number.h"
#include "text/words.h"

namespace berth::text {
namespace {

using Time = std::int64_t;

struct Moment {
  std::tm day{};  // local
  bool has_date = false;
  bool has_time = false;
};

std::optional<int> number(std::string_view text) {
  const auto value = parse_number(text, 1000000);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

bool read_clock(std::string_view word, Moment& out) {
  int shift = 0;
  std::string lower = to_lower(word);
  std::string_view rest = lower;
  if (rest.ends_with("pm") || rest.ends_with("am")) {
    shift = rest.ends_with("pm") ? 12 : 0;
    rest = trim(rest.substr(0, rest.size() - 2));
  } else {
    shift = -1;
  }
  const auto parts = split(rest, ':');
  if (parts.size() < 2 || parts.size() > 3) return false;
  const auto hour = number(parts[0]);
  const auto minute = number(parts[1]);
  const auto second = parts.size() == 3 ? number(parts[2]) : std::optional<int>(0);
  if (!hour || !minute || !second) return false;
  out.day.tm_hour = shift < 0 ? *hour : *hour % 12 + shift;
  out.day.tm_min = *minute;
  out.day.tm_sec = *second;
  out.has_time = true;
  return true;
}

bool read_date(std::string_view word, Moment& out) {
  const auto set = [&](std::optional<int> month, std::optional<int> day, std::optional<int> year) {
    if (!month || !day || !year) return false;
    out.day.tm_mon = *month - 1;
    out.day.tm_mday = *day;
    if (*year >= 0) out.day.tm_year = *year < 100 ? *year + 100 : *year - 1900;
    out.has_date = true;
    return true;
  };
  if (const auto parts = split(word, '-'); parts.size() == 3) {
    return set(number(parts[1]), number(parts[2]), number(parts[0]));
  }
  const char separator = word.find('/') != word.npos ? '/' : '.';
  if (const auto parts = split(word, separator); parts.size() >= 2) {
    return set(number(parts[0]), number(parts[1]),
               parts.size() > 2 ? number(parts[2]) : std::optional<int>(-1));
  }
  if (word.size() == 4 || word.size() == 6) {
    return set(number(word.substr(0, 2)), number(word.substr(2, 2)),
               word.size() == 6 ? number(word.substr(4)) : std::optional<int>(-1));
  }
  return false;
}

std::optional<Time> read_offset(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const auto count = parse_number(text.substr(0, digits), 1U << 30U);
  if (!count) return std::nullopt;
  const std::string unit = to_lower(text.substr(digits));
  constexpr std::array<std::pair<std::string_view, Time>, 5> kUnits = {
      {{"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}, {"weeks", 604800}}};
  for (const auto& [name, seconds] : kUnits) {
    if (unit.empty() || name.starts_with(unit)) return static_cast<Time>(*count) * seconds;
  }
  return std::nullopt;
}

bool read_name(std::string_view word, Moment& out) {
  constexpr std::array<std::tuple<std::string_view, int, int>, 5> kNames = {{{"midnight", 0, 0},
                                                                             {"noon", 12, 0},
                                                                             {"elevenses", 11, 0},
                                                                             {"fika", 15, 0},
                                                                             {"teatime", 16, 0}}};
  for (const auto& [name, hour, minute] : kNames) {
    if (word != name) continue;
    out.day.tm_hour = hour;
    out.day.tm_min = minute;
    out.day.tm_sec = 0;
    out.has_time = true;
    return true;
  }
  if (word == "today" || word == "tomorrow") {
    if (word == "tomorrow") ++out.day.tm_mday;
    out.has_date = true;
    return true;
  }
  return false;
}

}  // namespace

bool when_is_length(std::string_view text) {
  return to_lower(trim(text)).starts_with("now");
}

std::optional<Time> parse_when(std::string_view text, Time now) {
  const std::string lower = to_lower(trim(text));
  std::string_view rest = lower;
  if (rest == "now") return now;
  if (rest.starts_with("now+")) {
    const auto offset = read_offset(trim(rest.substr(4)));
    return offset ? std::optional<Time>(now + *offset) : std::nullopt;
  }
  if (rest.starts_with("uts")) {
    const auto seconds = parse_number(rest.substr(3), INT64_MAX);
    return seconds ? std::optional<Time>(static_cast<Time>(*seconds)) : std::nullopt;
  }
  Moment moment;
  const auto clock = static_cast<std::time_t>(now);
  localtime_r(&clock, &moment.day);
  std::string spaced(rest);
  if (const auto t = spaced.find('t'); t != spaced.npos && t > 0 && spaced[t - 1] >= '0' &&
                                       spaced[t - 1] <= '9' && spaced.find('-') < t) {
    spaced[t] = ' ';
  }
  for (std::string_view word : split(spaced, ' ')) {
    if (word.empty()) continue;
    if (word == "am" || word == "pm") {
      if (word == "pm" && moment.day.tm_hour < 12) moment.day.tm_hour += 12;
      continue;
    }
    if (!read_name(word, moment) && !read_clock(word, moment) && !read_date(word, moment)) {
      return std::nullopt;
    }
  }
  if (!moment.has_time) {
    moment.day.tm_hour = moment.day.tm_min = moment.day.tm_sec = 0;
  }
  moment.day.tm_isdst = -1;
  std::time_t at = std::mktime(&moment.day);
  if (!moment.has_date && at <= clock) {  // a time of day that is over means tomorrow
    ++moment.day.tm_mday;
    moment.day.tm_isdst = -1;
    at = std::mktime(&moment.day);
  }
  return static_cast<Time>(at);
}

}  // namespace berth::text
