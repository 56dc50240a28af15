// Matching of quotes and brackets in shell text.
#include "script/scan.h"

#include <algorithm>
#include <string>

#include "script/script.h"

namespace berth::script {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_name_char(char c) {
  return is_name_start(c) || is_digit(c);
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::size_t name_length(std::string_view s) {
  if (s.empty() || !is_name_start(s[0])) return 0;
  std::size_t n = 1;
  while (n < s.size() && is_name_char(s[n])) ++n;
  return n;
}

std::size_t skip_single_quotes(std::string_view s, std::size_t at) {
  const std::size_t end = s.find('\'', at + 1);
  return end == kUnclosed ? kUnclosed : end + 1;
}

std::size_t skip_ansi_quotes(std::string_view s, std::size_t at) {
  for (std::size_t i = at + 2; i < s.size(); ++i) {
    if (s[i] == '\\') {
      ++i;
    } else if (s[i] == '\'') {
      return i + 1;
    }
  }
  return kUnclosed;
}

std::size_t skip_double_quotes(std::string_view s, std::size_t at, int depth) {
  std::size_t i = at + 1;
  while (i < s.size()) {
    switch (s[i]) {
      case '"':
        return i + 1;
      case '\\':
        i += 2;
        break;
      case '`':
        i = skip_backticks(s, i);
        break;
      case '$':
        // Inside double quotes $' and $" are a lone dollar.
        i = i + 1 < s.size() && (s[i + 1] == '\'' || s[i + 1] == '"')
                ? i + 1
                : skip_dollar(s, i, depth + 1);
        break;
      default:
        ++i;
    }
  }
  return kUnclosed;
}

std::size_t skip_backticks(std::string_view s, std::size_t at) {
  for (std::size_t i = at + 1; i < s.size(); ++i) {
    if (s[i] == '\\') {
      ++i;
    } else if (s[i] == '`') {
      return i + 1;
    }
  }
  return kUnclosed;
}

namespace {

/// After `<<` at `at`: skips the body of the here-document, so that an apostrophe in it is no
/// quote. Returns the index of the line after it (or of the end), or `at + 2` when this is no
/// here-document.
std::size_t skip_here_document(std::string_view s, std::size_t at) {
  std::size_t i = at + 2;
  if (i < s.size() && s[i] == '<') return i + 1;  // <<< here-string
  const bool tabs = i < s.size() && s[i] == '-';
  if (tabs) ++i;
  while (i < s.size() && is_blank(s[i])) ++i;
  std::string delimiter;
  for (; i < s.size() && !is_blank(s[i]) && s[i] != '\n' && s[i] != ')' && s[i] != ';'; ++i) {
    if (s[i] != '\'' && s[i] != '"' && s[i] != '\\') delimiter += s[i];
  }
  if (delimiter.empty()) return at + 2;
  std::size_t line = s.find('\n', i);
  while (line != kUnclosed) {
    const std::size_t begin = line + 1;
    const std::size_t end = std::min(s.find('\n', begin), s.size());
    std::string_view text = s.substr(begin, end - begin);
    while (tabs && text.starts_with('\t')) text.remove_prefix(1);
    if (text == delimiter) return end;
    line = end < s.size() ? end : kUnclosed;
  }
  return s.size();  // runs to the end of the text, as in the shell
}

std::size_t skip_bracketed(std::string_view s, std::size_t at, char open, char close, int depth) {
  if (depth > static_cast<int>(kMaxDepth)) return kUnclosed;
  const bool commands = open == '(' && !s.substr(at).starts_with("((");  // not arithmetic
  std::size_t nested = 0;
  std::size_t i = at + 1;
  while (i < s.size()) {
    const char c = s[i];
    if (c == close) {
      if (nested == 0) return i + 1;
      --nested;
      ++i;
    } else if (c == open && open == '(') {
      ++nested;
      ++i;
    } else if (c == '\'') {
      i = skip_single_quotes(s, i);
    } else if (c == '"') {
      i = skip_double_quotes(s, i, depth + 1);
    } else if (c == '`') {
      i = skip_backticks(s, i);
    } else if (c == '$') {
      i = skip_dollar(s, i, depth + 1);
    } else if (c == '\\') {
      i += 2;
    } else if (commands && c == '<' && s.substr(i).starts_with("<<")) {
      i = skip_here_document(s, i);
    } else if (commands && c == '#' && (is_blank(s[i - 1]) || s[i - 1] == '\n')) {
      i = std::min(s.find('\n', i), s.size());
    } else {
      ++i;
    }
  }
  return kUnclosed;
}

}  // namespace

std::size_t skip_parentheses(std::string_view s, std::size_t at, int depth) {
  return skip_bracketed(s, at, '(', ')', depth);
}

std::size_t skip_braces(std::string_view s, std::size_t at, int depth) {
  return skip_bracketed(s, at, '{', '}', depth);
}

std::size_t skip_dollar(std::string_view s, std::size_t at, int depth) {
  const std::size_t i = at + 1;
  if (i >= s.size()) return i;
  switch (s[i]) {
    case '{':
      return skip_braces(s, i, depth + 1);
    case '(':
      return skip_parentheses(s, i, depth + 1);
    case '\'':
      return skip_ansi_quotes(s, at);
    case '"':
      return skip_double_quotes(s, i, depth + 1);
    default:
      break;
  }
  const std::size_t length = name_length(s.substr(i));
  if (length > 0) return i + length;
  constexpr std::string_view kSpecial = "@*#?-$!0123456789";
  return kSpecial.find(s[i]) != std::string_view::npos ? i + 1 : i;
}

}  // namespace berth::script
