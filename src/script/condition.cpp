// Tests on strings and numbers that are known; files are never looked at.
#include "script/condition.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "script/glob.h"

namespace berth::script {
namespace {

Truth truth(bool value) {
  return value ? Truth::yes : Truth::no;
}

std::optional<std::int64_t> number(const std::string& s) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (problem != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return value;
}

Truth compare(const Field& left, const std::string& op, const Field& right, bool patterns) {
  if (!left.known || !right.known) return Truth::unknown;
  if (op == "=" || op == "==" || op == "!=") {
    const bool equal = patterns ? glob_match(right.text, left.text) : left.text == right.text;
    return truth(equal == (op != "!="));
  }
  const auto a = number(left.text);
  const auto b = number(right.text);
  if (!a || !b) return Truth::unknown;
  if (op == "-eq") return truth(*a == *b);
  if (op == "-ne") return truth(*a != *b);
  if (op == "-lt") return truth(*a < *b);
  if (op == "-le") return truth(*a <= *b);
  if (op == "-gt") return truth(*a > *b);
  if (op == "-ge") return truth(*a >= *b);
  return Truth::unknown;
}

Truth simple_test(std::span<const Field> words, bool patterns) {
  if (!words.empty() && words[0].text == "!")
    return negated(simple_test(words.subspan(1), patterns));
  if (words.empty()) return Truth::no;
  if (words.size() == 1) return words[0].known ? truth(!words[0].text.empty()) : Truth::unknown;
  if (words.size() == 2) {
    if (!words[1].known) return Truth::unknown;
    if (words[0].text == "-z") return truth(words[1].text.empty());
    if (words[0].text == "-n") return truth(!words[1].text.empty());
    return Truth::unknown;
  }
  if (words.size() == 3) return compare(words[0], words[1].text, words[2], patterns);
  return Truth::unknown;
}

}  // namespace

Truth negated(Truth truth) {
  if (truth == Truth::unknown) return truth;
  return truth == Truth::yes ? Truth::no : Truth::yes;
}

Truth decide_test(std::span<const Field> words) {
  const bool compound = std::any_of(words.begin(), words.end(), [](const Field& f) {
    return f.text == "-a" || f.text == "-o" || f.text == "(";
  });
  return compound ? Truth::unknown : simple_test(words, false);
}

Truth decide_extended_test(std::span<const std::string> words, int line, Expander& expander) {
  // a && b && c, or a || b || c; anything nested is left undecided.
  std::vector<Truth> parts;
  std::vector<Field> part;
  std::string op;
  for (std::size_t i = 0; i <= words.size(); ++i) {
    const bool joins = i < words.size() && (words[i] == "&&" || words[i] == "||");
    if (i < words.size() && words[i] == "(") return Truth::unknown;
    if (joins && !op.empty() && op != words[i]) return Truth::unknown;
    if (i == words.size() || joins) {
      parts.push_back(simple_test(part, true));
      part.clear();
      if (joins) op = words[i];
      continue;
    }
    part.push_back(part.size() == 2 ? expander.pattern(words[i], line)
                                    : expander.single(words[i], line));
  }
  const Truth decisive = op == "||" ? Truth::yes : Truth::no;
  if (std::find(parts.begin(), parts.end(), decisive) != parts.end()) return decisive;
  if (std::find(parts.begin(), parts.end(), Truth::unknown) != parts.end()) return Truth::unknown;
  return negated(decisive);
}

}  // namespace berth::script
