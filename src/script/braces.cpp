// Brace expansion: {a,b}, {1..4}, {01..10..3}, {a..e}, nested and with text around it.
#include <algorithm>
#include <charconv>

#include "script/expand.h"
#include "script/scan.h"

namespace berth::script {
namespace {

constexpr std::size_t kMaxResults = 16'384;

/// Index after what begins at `i` when it is quoted or a substitution, else `i`.
std::size_t skip_opaque(std::string_view s, std::size_t i) {
  std::size_t end = i;
  if (s[i] == '\\') end = i + 2;
  if (s[i] == '\'') end = skip_single_quotes(s, i);
  if (s[i] == '"') end = skip_double_quotes(s, i);
  if (s[i] == '`') end = skip_backticks(s, i);
  if (s[i] == '$') end = skip_dollar(s, i);
  return std::min(end, s.size());
}

struct Group {
  std::size_t open = 0;
  std::size_t close = 0;            // of the '}'
  std::vector<std::size_t> commas;  // of this level
};

/// The first {…} that has a comma or a range.
std::optional<Group> first_group(std::string_view s, std::size_t from) {
  std::vector<Group> open;
  for (std::size_t i = from; i < s.size();) {
    const std::size_t next = skip_opaque(s, i);
    if (next > i) {
      i = next;
      continue;
    }
    if (s[i] == '{') {
      if (open.size() < kMaxDepth) open.push_back({i, 0, {}});
    } else if (s[i] == ',' && !open.empty()) {
      open.back().commas.push_back(i);
    } else if (s[i] == '}' && !open.empty()) {
      Group group = open.back();
      open.pop_back();
      group.close = i;
      const std::string_view inside = s.substr(group.open + 1, i - group.open - 1);
      const bool expands = !group.commas.empty() || inside.find("..") != std::string_view::npos;
      if (open.empty() && expands) return group;
    }
    ++i;
  }
  return std::nullopt;
}

std::optional<std::int64_t> number(std::string_view s) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(s.begin(), s.end(), value);
  if (problem != std::errc() || end != s.end() || s.empty()) return std::nullopt;
  if (value > 1'000'000'000 || value < -1'000'000'000) return std::nullopt;
  return value;
}

std::string padded(std::int64_t value, std::size_t width) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  const std::size_t sign = value < 0 ? 1 : 0;
  if (digits.size() + sign < width) digits.insert(0, width - digits.size() - sign, '0');
  return (value < 0 ? "-" : "") + digits;
}

/// "1..4" or "a..e..2"; empty when it is not a range.
std::vector<std::string> range(std::string_view inside) {
  const std::size_t dots = inside.find("..");
  if (dots == std::string_view::npos) return {};
  const std::string_view first = inside.substr(0, dots);
  std::string_view last = inside.substr(dots + 2);
  std::int64_t step = 1;
  if (const std::size_t more = last.find(".."); more != std::string_view::npos) {
    const auto given = number(last.substr(more + 2));
    if (!given) return {};
    step = std::max<std::int64_t>(1, *given < 0 ? -*given : *given);
    last = last.substr(0, more);
  }
  auto begin = number(first);
  auto end = number(last);
  const bool letters =
      first.size() == 1 && last.size() == 1 && is_name_start(first[0]) && is_name_start(last[0]);
  if (letters) {
    begin = first[0];
    end = last[0];
  }
  if (!begin || !end) return {};
  const bool zeros = (first.size() > 1 && first[0] == '0') || (last.size() > 1 && last[0] == '0');
  const std::size_t width = zeros ? std::max(first.size(), last.size()) : 0;
  std::vector<std::string> out;
  const std::int64_t direction = *begin <= *end ? step : -step;
  for (std::int64_t i = *begin; direction > 0 ? i <= *end : i >= *end; i += direction) {
    if (out.size() >= kMaxResults) break;
    out.push_back(letters ? std::string(1, static_cast<char>(i)) : padded(i, width));
  }
  return out;
}

bool expand(std::string_view word, std::vector<std::string>& out, Limits& limits,
            std::size_t depth) {
  if (!limits.spend_work(word.size() + 1) || depth > kMaxDepth || out.size() > kMaxResults) {
    limits.stop();
    return false;
  }
  std::size_t from = 0;
  while (const auto group = first_group(word, from)) {
    const std::string_view before = word.substr(0, group->open);
    const std::string_view after = word.substr(group->close + 1);
    std::vector<std::string> middles;
    if (group->commas.empty()) {
      middles = range(word.substr(group->open + 1, group->close - group->open - 1));
      if (middles.empty()) {
        from = group->close + 1;
        continue;
      }
    } else {
      std::size_t begin = group->open + 1;
      for (std::size_t k = 0; k <= group->commas.size(); ++k) {
        const std::size_t end = k < group->commas.size() ? group->commas[k] : group->close;
        middles.emplace_back(word.substr(begin, end - begin));
        begin = end + 1;
      }
    }
    for (const std::string& middle : middles) {
      std::string joined(before);
      joined += middle;
      joined += after;
      if (!expand(joined, out, limits, depth + 1)) return false;
    }
    return true;
  }
  out.emplace_back(word);
  return true;
}

}  // namespace

std::vector<std::string> expand_braces(std::string_view word, Limits& limits) {
  if (word.find('{') == std::string_view::npos) return {std::string(word)};
  // Only words with a comma or a range can change; ${x} alone is common and stays.
  if (!first_group(word, 0)) return {std::string(word)};
  std::vector<std::string> out;
  expand(word, out, limits, 0);
  return out;
}

}  // namespace berth::script
