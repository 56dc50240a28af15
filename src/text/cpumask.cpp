// What cpumask.h promises.
#include "text/cpumask.h"

#include <algorithm>

#include "text/number.h"

namespace berth::text {
namespace {

// What all entries of one list may take together, so that "ffff…*65536" stays small.
constexpr std::size_t kMaxHexDigits = std::size_t{4} << 20;

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

bool drop_0x(std::string_view& s) {
  if (s.size() < 2 || s[0] != '0' || (s[1] != 'x' && s[1] != 'X')) return false;
  s.remove_prefix(2);
  return true;
}

std::optional<Bits> parse_mask(std::string_view s, char* offending) {
  drop_0x(s);
  if (s.empty()) return std::nullopt;
  for (const char c : s) {
    if (hex_digit(c)) continue;
    if (offending != nullptr) *offending = c;
    return std::nullopt;
  }
  while (s.size() > 1 && s.front() == '0') s.remove_prefix(1);
  if (s.size() > (kMaxCpuId + 1) / 4) return std::nullopt;
  Bits mask;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const unsigned digit = *hex_digit(s[s.size() - 1 - i]);
    for (unsigned bit = 0; bit < 4; ++bit) {
      if ((digit >> bit & 1U) != 0) mask.set(i * 4 + bit);
    }
  }
  return mask;
}

std::optional<Bits> parse_id(std::string_view s, char* offending) {
  const bool hex = drop_0x(s);
  if (s.empty()) return std::nullopt;
  std::size_t id = 0;
  for (const char c : s) {
    const auto digit = hex_digit(c);
    if (!digit || (!hex && *digit > 9)) {
      if (offending != nullptr) *offending = c;
      return std::nullopt;
    }
    id = id * (hex ? 16 : 10) + *digit;
    if (id > kMaxCpuId) return std::nullopt;
  }
  return Bits::range(id, id);
}

template <class ParseEntry>
std::optional<std::vector<Bits>> parse_list(std::string_view s, char* offending,
                                            ParseEntry parse_entry) {
  std::vector<Bits> out;
  std::size_t digits = 0;
  for (bool more = true; more;) {
    const std::size_t comma = s.find(',');
    std::string_view entry = s.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) s.remove_prefix(comma + 1);

    std::uint64_t times = 1;
    if (const std::size_t star = entry.find('*'); star != std::string_view::npos) {
      const std::string_view count = entry.substr(star + 1);
      const auto number = parse_number(count, kMaxListEntries);
      if (!number || *number == 0) {
        const std::size_t bad = count.find_first_not_of("0123456789");
        if (offending != nullptr && bad != std::string_view::npos) *offending = count[bad];
        return std::nullopt;
      }
      times = *number;
      entry = entry.substr(0, star);
    }
    auto set = parse_entry(entry, offending);
    if (!set) return std::nullopt;
    const std::size_t each = set->empty() ? 1 : set->last() / 4 + 1;
    if (times > kMaxListEntries - out.size() || times > (kMaxHexDigits - digits) / each) {
      return std::nullopt;
    }
    digits += each * times;
    out.insert(out.end(), times, *set);
  }
  return out;
}

}  // namespace

std::optional<std::vector<Bits>> parse_id_map(std::string_view s, char* offending) {
  return parse_list(s, offending, parse_id);
}

std::optional<std::vector<Bits>> parse_mask_list(std::string_view s, char* offending) {
  return parse_list(s, offending, parse_mask);
}

std::optional<Bits> parse_id_set(std::string_view s) {
  Bits set;
  for (bool more = true; more;) {
    const std::size_t comma = s.find(',');
    const std::string_view entry = s.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) s.remove_prefix(comma + 1);
    const std::size_t dash = entry.find('-');
    const auto first = parse_number(entry.substr(0, dash), kMaxCpuId);
    const auto last =
        dash == std::string_view::npos ? first : parse_number(entry.substr(dash + 1), kMaxCpuId);
    if (!first || !last || *last < *first) return std::nullopt;
    for (std::uint64_t id = *first; id <= *last; ++id) set.set(id);
  }
  return set;
}

}  // namespace berth::text
