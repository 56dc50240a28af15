// Tokens of shell text.
#include "script/lexer.h"

#include <algorithm>
#include <array>

#include "script/scan.h"

namespace berth::script {
namespace {

constexpr std::array<std::string_view, 24> kOperators = {
    "&>>", ";;&", "<<-", "<<<", "&&", "||", ";;", ";&", "<<", ">>", "<&", ">&",
    "&>",  ">|",  "<>",  "|&",  "&",  "|",  ";",  "(",  ")",  "<",  ">",  "\n"};

bool ends_word(char c) {
  return is_blank(c) || c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')' ||
         c == '<' || c == '>';
}

/// True when the text before `at` ends in `name=` or `name+=`, so that '(' opens an array.
bool after_assignment(std::string_view word) {
  if (!word.ends_with('=')) return false;
  word.remove_suffix(1);
  if (word.ends_with('+')) word.remove_suffix(1);
  return !word.empty() && name_length(word) == word.size();
}

}  // namespace

const Token& Lexer::peek() {
  if (!next_) next_ = scan();
  return *next_;
}

Token Lexer::take() {
  Token token = peek();
  next_.reset();
  return token;
}

Token Lexer::peek_second() {
  Lexer ahead = *this;
  ahead.take();
  return ahead.take();
}

void Lexer::expect_here_document(std::string delimiter, bool strip_tabs) {
  here_.push_back({std::move(delimiter), strip_tabs});
}

std::optional<std::string> Lexer::take_arithmetic(std::size_t begin) {
  // A window, so that a text full of "((" is not read to its end once for each of them.
  constexpr std::size_t kMaxArithmetic = 4096;
  const std::string_view window = text_.substr(begin, kMaxArithmetic);
  if (!window.starts_with("((")) return std::nullopt;
  const std::size_t length = skip_parentheses(window, 0);
  if (length == kUnclosed || length < 4 || window[length - 2] != ')') return std::nullopt;
  const std::size_t end = begin + length;
  if (next_) line_ = next_->line;
  next_.reset();
  at_ = begin;
  std::string inside(window.substr(2, length - 4));
  move_to(end);
  return inside;
}

void Lexer::move_to(std::size_t end) {
  line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                       text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  at_ = end;
}

Token Lexer::error(std::string_view what) const {
  return {Token::Kind::error, what, line_, at_, text_.size()};
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    if (is_blank(text_[at_])) {
      ++at_;
    } else if (text_.substr(at_).starts_with("\\\n")) {
      move_to(at_ + 2);
    } else if (text_.substr(at_).starts_with("\\\r\n")) {
      move_to(at_ + 3);
    } else if (text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

void Lexer::skip_here_documents() {
  for (const HereDocument& here : here_) {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      if (line.ends_with('\r')) line.remove_suffix(1);
      while (here.strip_tabs && line.starts_with('\t')) line.remove_prefix(1);
      const bool last = line == here.delimiter;
      move_to(std::min(end + 1, text_.size()));
      if (last) break;
    }
  }
  here_.clear();
}

Token Lexer::scan() {
  skip_blanks();
  if (at_ >= text_.size()) return {Token::Kind::end, "end of the script", line_, at_, at_};
  const std::string_view rest = text_.substr(at_);
  // <( and >( are words: the name of a pipe to a process.
  if (rest.starts_with("<(") || rest.starts_with(">(")) return scan_word();
  for (const std::string_view op : kOperators) {
    if (!rest.starts_with(op)) continue;
    Token token{Token::Kind::op, rest.substr(0, op.size()), line_, at_, at_ + op.size()};
    move_to(token.end);
    if (op == "\n") {
      token.kind = Token::Kind::newline;
      skip_here_documents();
    }
    return token;
  }
  return scan_word();
}

std::size_t Lexer::word_end(std::size_t at, std::string_view& problem) const {
  const std::size_t begin = at;
  while (at < text_.size()) {
    const char c = text_[at];
    const bool process = (c == '<' || c == '>') && at + 1 < text_.size() && text_[at + 1] == '(';
    if (c == '(' && after_assignment(text_.substr(begin, at - begin))) {
      at = skip_parentheses(text_, at);
    } else if (process && at == begin) {
      at = skip_parentheses(text_, at + 1);
    } else if (ends_word(c)) {
      return at;
    } else if (c == '\\') {
      at = std::min(at + 2, text_.size());
    } else if (c == '\'') {
      at = skip_single_quotes(text_, at);
    } else if (c == '"') {
      at = skip_double_quotes(text_, at);
    } else if (c == '`') {
      at = skip_backticks(text_, at);
    } else if (c == '$') {
      at = skip_dollar(text_, at);
    } else {
      ++at;
    }
    if (at == kUnclosed) {
      problem = c == '\'' || c == '"' ? "a quote is not closed" : "a substitution is not closed";
      return kUnclosed;
    }
  }
  return text_.size();
}

Token Lexer::scan_word() {
  std::string_view problem;
  const std::size_t end = word_end(at_, problem);
  if (end == kUnclosed) {
    Token token = error(problem);
    at_ = text_.size();
    return token;
  }
  Token token{Token::Kind::word, text_.substr(at_, end - at_), line_, at_, end};
  const bool number = std::all_of(token.text.begin(), token.text.end(), is_digit);
  move_to(end);
  // 2>file: the number belongs to the redirection.
  if (number && end < text_.size() && (text_[end] == '<' || text_[end] == '>')) return scan();
  return token;
}

}  // namespace berth::script
