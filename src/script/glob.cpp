// Iterative matching: at most pattern × text steps, no recursion.
#include "script/glob.h"

namespace berth::script {
namespace {

/// Length of the [set] at the start of `pattern`; 0 when it is not one.
std::size_t set_length(std::string_view pattern) {
  std::size_t i = 1;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) ++i;
  if (i < pattern.size() && pattern[i] == ']') ++i;
  while (i < pattern.size() && pattern[i] != ']') ++i;
  return i < pattern.size() ? i + 1 : 0;
}

bool in_set(std::string_view set, char c) {
  set = set.substr(1, set.size() - 2);
  const bool negated = set.starts_with('!') || set.starts_with('^');
  if (negated) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  return found != negated;
}

/// Matches one character of text; returns how much of the pattern it used, 0 = no match.
std::size_t match_one(std::string_view pattern, char c) {
  if (pattern.empty()) return 0;
  if (pattern[0] == '?') return 1;
  if (pattern[0] == '[') {
    const std::size_t length = set_length(pattern);
    if (length > 0) return in_set(pattern.substr(0, length), c) ? length : 0;
  }
  if (pattern[0] == '\\' && pattern.size() > 1) return pattern[1] == c ? 2 : 0;
  return pattern[0] == c ? 1 : 0;
}

}  // namespace

bool has_glob(std::string_view word) {
  return word.find_first_of("*?[") != std::string_view::npos;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    const std::size_t used = match_one(pattern.substr(p), text[t]);
    if (used > 0) {
      p += used;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace berth::script
