// What words.h promises.
#include "text/words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace berth::text {
namespace {

constexpr std::size_t kMaxCompared = 64;  // longer words are not slips of the finger

bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Insertions, deletions, replacements and swaps of neighbours, ignoring case. Both words are at
/// most kMaxCompared long.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  using Row = std::array<std::size_t, kMaxCompared + 1>;
  Row before{};
  Row last{};
  Row now{};
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

template <class Word>
std::string nearest_of(std::string_view word, std::span<const Word> known) {
  if (word.empty() || word.size() > kMaxCompared) return {};
  const std::size_t allowed = std::max<std::size_t>(1, (word.size() + 1) / 3);
  std::size_t best = allowed + 1;
  std::string_view found;
  for (const std::string_view candidate : known) {
    if (candidate.size() > kMaxCompared || candidate.size() > word.size() + allowed ||
        candidate.size() + allowed < word.size()) {
      continue;
    }
    const std::size_t distance = edit_distance(word, candidate);
    // Every letter changed is not a likeness, however short the word.
    if (distance < best && distance < std::max(word.size(), candidate.size())) {
      best = distance;
      found = candidate;
    }
  }
  return std::string(found);
}

}  // namespace

std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = s.find(separator);
    parts.push_back(s.substr(0, at));
    if (at == std::string_view::npos) return parts;
    s.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

std::string to_lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::string to_upper(std::string_view s) {
  std::string out(s);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

std::string absolute(std::string_view path, std::string_view directory) {
  if (path.empty() || path.front() == '/') return std::string(path);
  std::string out(directory);
  if (!out.ends_with('/')) out += '/';
  return out += path;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

std::string nearest(std::string_view word, std::span<const std::string> known) {
  return nearest_of(word, known);
}

std::string nearest(std::string_view word, std::span<const std::string_view> known) {
  return nearest_of(word, known);
}

}  // namespace berth::text
