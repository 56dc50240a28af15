// Checking the values of configuration keys.
#include "conf/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "text/number.h"
#include "text/size.h"
#include "text/words.h"

namespace berth::conf {
namespace {

void bad(const Pair& pair, std::string_view allowed, Complaints& complaints) {
  complaints.error(pair.at, fmt::format("{}={}: {}", pair.key, shown(pair.value), allowed));
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view w) { return text::equal_ignoring_case(word, w); });
}

const std::string_view* find_word(std::span<const std::string_view> allowed,
                                  std::string_view word) {
  const auto at = std::ranges::find_if(
      allowed, [&](std::string_view w) { return text::equal_ignoring_case(w, word); });
  return at == allowed.end() ? nullptr : &*at;
}

std::string allowed_text(std::span<const std::string_view> allowed) {
  return fmt::format("allowed are {}", fmt::join(allowed, ", "));
}

}  // namespace

bool is(const Pair& pair, std::string_view key) {
  return text::equal_ignoring_case(pair.key, key);
}

std::optional<Located<bool>> boolean(const Pair& pair, Complaints& complaints) {
  if (is_one_of(pair.value, {"yes", "true", "1"})) return Located<bool>{true, pair.at};
  if (is_one_of(pair.value, {"no", "false", "0"})) return Located<bool>{false, pair.at};
  bad(pair, "allowed are YES and NO", complaints);
  return std::nullopt;
}

std::optional<Located<std::uint32_t>> number(const Pair& pair, std::uint32_t min, std::uint32_t max,
                                             Complaints& complaints) {
  const auto value = text::parse_number(pair.value, max);
  if (value && *value >= min) {
    return Located<std::uint32_t>{static_cast<std::uint32_t>(*value), pair.at};
  }
  bad(pair, fmt::format("allowed is a whole number from {} to {}", min, max), complaints);
  return std::nullopt;
}

std::optional<Located<std::uint64_t>> megabytes(const Pair& pair, Complaints& complaints) {
  if (const auto value = text::parse_size_mb(pair.value)) {
    return Located<std::uint64_t>{*value, pair.at};
  }
  bad(pair, "allowed is a number of MiB, or a number with K, M, G or T", complaints);
  return std::nullopt;
}

std::optional<Located<std::uint64_t>> memory_limit(const Pair& pair, Complaints& complaints) {
  if (is_one_of(pair.value, {"unlimited", "infinite", "-1"})) return std::nullopt;
  auto value = megabytes(pair, complaints);
  if (value && value->value == 0) return std::nullopt;
  return value;
}

std::optional<Located<text::TimeLimit>> time_limit(const Pair& pair, Complaints& complaints) {
  if (const auto value = text::parse_time_limit(pair.value)) {
    return Located<text::TimeLimit>{*value, pair.at};
  }
  bad(pair, "allowed are minutes, h:m:s, d-h:m:s and UNLIMITED", complaints);
  return std::nullopt;
}

std::optional<Located<std::string>> one_of(const Pair& pair,
                                           std::span<const std::string_view> allowed,
                                           Complaints& complaints) {
  if (const std::string_view* word = find_word(allowed, pair.value)) {
    return Located<std::string>{std::string(*word), pair.at};
  }
  bad(pair, allowed_text(allowed), complaints);
  return std::nullopt;
}

std::optional<Located<std::vector<std::string>>> some_of(const Pair& pair,
                                                         std::span<const std::string_view> allowed,
                                                         Complaints& complaints) {
  Located<std::vector<std::string>> out{{}, pair.at};
  for (const std::string& word : word_list(pair).value) {
    const std::string_view* known = find_word(allowed, word);
    if (known == nullptr) {
      const std::string near = text::nearest(word, allowed);
      bad(pair,
          near.empty() ? fmt::format("{} is not known; {}", shown(word), allowed_text(allowed))
                       : fmt::format("{} is not known; did you mean {}?", shown(word), near),
          complaints);
      return std::nullopt;
    }
    out.value.emplace_back(*known);
  }
  return out;
}

Located<std::vector<std::string>> word_list(const Pair& pair) {
  Located<std::vector<std::string>> out{{}, pair.at};
  for (const std::string_view word : text::split(pair.value, ',')) {
    const std::string_view trimmed = text::trim(word);
    if (!trimmed.empty()) out.value.emplace_back(trimmed);
  }
  return out;
}

}  // namespace berth::conf
