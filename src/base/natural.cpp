#include "base/natural.h"

#include <cctype>
#include <cstddef>

namespace berth {
namespace {

bool digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// The run of digits at `at`, without leading zeros.
std::string_view digits_at(std::string_view s, std::size_t at, std::size_t& end) {
  end = at;
  while (end < s.size() && digit(s[end])) ++end;
  while (at + 1 < end && s[at] == '0') ++at;
  return s.substr(at, end - at);
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      std::size_t a_end = 0;
      std::size_t b_end = 0;
      const auto x = digits_at(a, i, a_end);
      const auto y = digits_at(b, j, b_end);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = a_end;
      j = b_end;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;  // equal numbers, different zero padding
}

}  // namespace berth
