// --begin and --deadline: which texts are times. Only the syntax; nothing here knows what time it
// is.
#include <algorithm>
#include <array>
#include <cstddef>

#include "text/duration.h"
#include "text/words.h"

namespace berth::text {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class TimeSpec {
 public:
  explicit TimeSpec(std::string_view s) : s_(s) {}

  bool parse(std::size_t& position) {
    bool any = false;
    skip_blanks();
    while (at_ < s_.size()) {
      const std::size_t start = at_;
      if (!component()) {
        position = start;
        return false;
      }
      any = true;
      skip_blanks();
    }
    position = at_;
    return any;
  }

 private:
  /// One date or one time of day; each may be given once.
  bool component() {
    if (letter(s_[at_])) return word();
    if (!digit(s_[at_])) return false;
    const std::size_t end = run_end(at_);
    const std::size_t length = end - at_;
    const char next = end < s_.size() ? s_[end] : '\0';
    if (next == ':') return time_of_day();
    if (next == '-' && length == 4) return iso_date();
    if (next == '/' || next == '.') return american_date(next);
    if (length == 4 || length == 6) return compact_date(length);
    return false;
  }

  bool word() {
    std::size_t end = at_;
    while (end < s_.size() && letter(s_[end])) ++end;
    const std::string name = to_lower(s_.substr(at_, end - at_));
    at_ = end;
    if (name == "now") return take(date_) && take(time_) && offset();
    if (name == "today" || name == "tomorrow") return take(date_);
    constexpr std::array<std::string_view, 5> kTimes = {"midnight", "noon", "elevenses", "fika",
                                                        "teatime"};
    return std::ranges::find(kTimes, name) != kTimes.end() && take(time_);
  }

  /// "", "+5", "+5hours", "-1day" behind "now".
  bool offset() {
    if (at_ == s_.size() || (s_[at_] != '+' && s_[at_] != '-')) return true;
    ++at_;
    std::size_t end = run_end(at_);
    if (end == at_ || end - at_ > 9) return false;
    at_ = end;
    while (end < s_.size() && letter(s_[end])) ++end;
    const std::string unit = to_lower(s_.substr(at_, end - at_));
    at_ = end;
    if (unit.empty()) return true;
    // Any beginning of a unit that is long enough to be told from the others.
    constexpr std::array<std::string_view, 5> kUnits = {"seconds", "minutes", "hours", "days",
                                                        "weeks"};
    return std::ranges::any_of(kUnits, [&](std::string_view u) { return u.starts_with(unit); });
  }

  bool time_of_day() {
    std::size_t hour = 0;
    std::size_t part = 0;
    if (!number(1, 2, 0, 24, hour) || !accept(':') || !number(2, 2, 0, 59, part)) return false;
    if (accept(':') && !number(2, 2, 0, 59, part)) return false;
    const std::size_t before = at_;
    skip_blanks();
    const std::string half = to_lower(s_.substr(at_, 2));
    if (half == "am" || half == "pm") {
      at_ += 2;
      if (hour > 12) return false;
    } else {
      at_ = before;
    }
    return take(time_);
  }

  bool iso_date() {
    std::size_t part = 0;
    if (!number(4, 4, 1, 9999, part) || !accept('-') || !number(1, 2, 1, 12, part) ||
        !accept('-') || !number(1, 2, 1, 31, part)) {
      return false;
    }
    if (at_ < s_.size() && (s_[at_] == 'T' || s_[at_] == 't')) {
      ++at_;
      return take(date_) && at_ < s_.size() && digit(s_[at_]) && time_of_day();
    }
    return take(date_);
  }

  bool american_date(char separator) {
    std::size_t part = 0;
    if (!number(1, 2, 1, 12, part) || !accept(separator) || !number(1, 2, 1, 31, part))
      return false;
    if (accept(separator) && !year()) return false;
    return take(date_);
  }

  bool compact_date(std::size_t length) {
    std::size_t part = 0;
    if (!number(2, 2, 1, 12, part, true) || !number(2, 2, 1, 31, part, true)) return false;
    if (length == 6 && !number(2, 2, 0, 99, part)) return false;
    return take(date_);
  }

  bool year() {
    std::size_t part = 0;
    return run_end(at_) - at_ == 4 ? number(4, 4, 1, 9999, part) : number(2, 2, 0, 99, part);
  }

  /// A number of so many digits and so large; `glued` when more digits may follow.
  bool number(std::size_t min_digits, std::size_t max_digits, std::size_t low, std::size_t high,
              std::size_t& value, bool glued = false) {
    std::size_t length = run_end(at_) - at_;
    if (glued) length = std::min(length, max_digits);
    if (length < min_digits || length > max_digits) return false;
    value = 0;
    for (std::size_t i = 0; i < length; ++i) {
      value = value * 10 + static_cast<std::size_t>(s_[at_ + i] - '0');
    }
    at_ += length;
    return value >= low && value <= high;
  }

  bool accept(char c) {
    if (at_ == s_.size() || s_[at_] != c) return false;
    ++at_;
    return true;
  }
  static bool take(bool& seen) {
    const bool first = !seen;
    seen = true;
    return first;
  }
  void skip_blanks() {
    while (at_ < s_.size() && (s_[at_] == ' ' || s_[at_] == '\t')) ++at_;
  }
  [[nodiscard]] std::size_t run_end(std::size_t from) const {
    while (from < s_.size() && digit(s_[from])) ++from;
    return from;
  }

  std::string_view s_;
  std::size_t at_ = 0;
  bool date_ = false;
  bool time_ = false;
};

}  // namespace

bool valid_time_spec(std::string_view s, std::size_t& position) {
  return TimeSpec(s).parse(position);
}

}  // namespace berth::text
