// Shell text as tokens: words, operators, ends of lines. Comments, line continuations and the
// bodies of here-documents are passed over.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::script {

struct Token {
  enum class Kind { word, op, newline, end, error } kind = Kind::end;
  std::string_view text;  // of an error: what is wrong
  int line = 0;
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] bool is_op(std::string_view op) const { return kind == Kind::op && text == op; }
  [[nodiscard]] bool is_word(std::string_view word) const {
    return kind == Kind::word && text == word;
  }
};

class Lexer {
 public:
  Lexer(std::string_view text, int first_line) : text_(text), line_(first_line) {}

  /// The next token, without taking it.
  const Token& peek();
  Token take();
  /// The token after the next one.
  Token peek_second();
  /// Announces a here-document; its body begins after the next end of line.
  void expect_here_document(std::string delimiter, bool strip_tabs);
  /// Right after the token `begin`..: everything up to the matching "))" of an arithmetic command
  /// whose "((" starts at `begin`. nullopt when it is not one. Moves behind it.
  std::optional<std::string> take_arithmetic(std::size_t begin);

  [[nodiscard]] std::string_view source(std::size_t begin, std::size_t end) const {
    return text_.substr(begin, end - begin);
  }

 private:
  Token scan();
  Token scan_word();
  void skip_blanks();
  void skip_here_documents();
  [[nodiscard]] Token error(std::string_view what) const;
  std::size_t word_end(std::size_t at, std::string_view& problem) const;
  void move_to(std::size_t end);

  struct HereDocument {
    std::string delimiter;
    bool strip_tabs;
  };

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::optional<Token> next_;
  std::vector<HereDocument> here_;
};

}  // namespace berth::script
