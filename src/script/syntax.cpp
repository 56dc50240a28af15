// Recursive descent over shell grammar.
#include "script/syntax.h"

#include <algorithm>
#include <array>

#include "script/lexer.h"
#include "script/scan.h"

namespace berth::script {
namespace {

using Kind = Node::Kind;

bool is_redirection(const Token& token) {
  constexpr std::array<std::string_view, 12> known = {"<",  ">",  ">>",  "<<", "<<-", "<<<",
                                                      "<&", ">&", "&>>", "&>", ">|",  "<>"};
  return token.kind == Token::Kind::op &&
         std::find(known.begin(), known.end(), token.text) != known.end();
}

/// A word with its quotes dropped, for the end mark of a here-document.
std::string unquoted(std::string_view word) {
  std::string out;
  for (const char c : word) {
    if (c != '\'' && c != '"' && c != '\\') out += c;
  }
  return out;
}

/// Source text on one line: continuation marks and what follows them become one blank.
std::string one_line(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size() && out.size() < kMaxText; ++i) {
    const bool continued = text[i] == '\\' && i + 1 < text.size() &&
                           (text[i + 1] == '\n' || text.substr(i + 1).starts_with("\r\n"));
    if (!continued) {
      out += text[i];
      continue;
    }
    i = text.find('\n', i);
    while (i + 1 < text.size() && is_blank(text[i + 1])) ++i;
    while (!out.empty() && is_blank(out.back())) out.pop_back();
    out += ' ';
  }
  while (!out.empty() && (is_blank(out.back()) || out.back() == '\n')) out.pop_back();
  return out;
}

class Parser {
 public:
  Parser(std::string_view text, int first_line) : lexer_(text, first_line) {}

  Tree parse() {
    Tree tree;
    tree.root = list({});
    if (!failed() && lexer_.peek().kind != Token::Kind::end) unexpected(lexer_.peek());
    tree.error = std::move(error_);
    tree.truncated = truncated_;
    return tree;
  }

 private:
  using Words = std::vector<std::string_view>;

  [[nodiscard]] bool failed() const { return error_.has_value() || truncated_; }

  void fail(int line, std::string what) {
    if (!failed()) error_ = SyntaxError{line, std::move(what)};
  }

  void unexpected(const Token& token) {
    if (token.kind == Token::Kind::error) return fail(token.line, std::string(token.text));
    if (token.kind == Token::Kind::end)
      return fail(token.line, "it ends in the middle of a command");
    const std::string shown =
        token.kind == Token::Kind::newline ? "end of line" : std::string(token.text.substr(0, 40));
    fail(token.line, "unexpected `" + shown + "'");
  }

  Node make(Kind kind) {
    if (++nodes_ > kMaxNodes) truncated_ = true;
    Node node;
    node.kind = kind;
    node.line = lexer_.peek().line;
    return node;
  }

  void expect(std::string_view word) {
    if (failed()) return;
    const Token token = lexer_.take();
    if (!token.is_word(word) && !token.is_op(word)) unexpected(token);
  }

  void skip_newlines() {
    while (lexer_.peek().kind == Token::Kind::newline) lexer_.take();
  }

  static bool is_one_of(const Token& token, const Words& words) {
    if (token.kind != Token::Kind::word && token.kind != Token::Kind::op) return false;
    return std::find(words.begin(), words.end(), token.text) != words.end();
  }

  /// Commands up to one of `stop` (not taken) or the end.
  Node list(const Words& stop) {
    Node node = make(Kind::list);
    if (++depth_ > kMaxDepth) fail(node.line, "nested too deeply");
    while (!failed()) {
      skip_newlines();
      const Token& token = lexer_.peek();
      if (token.kind == Token::Kind::end || is_one_of(token, stop)) break;
      Node child = and_or();
      if (failed()) break;  // keep only what is complete
      const Token& after = lexer_.peek();
      if (after.is_op("&")) {
        child.background = true;
        lexer_.take();
      } else if (after.is_op(";") || after.kind == Token::Kind::newline) {
        lexer_.take();
      } else if (after.kind != Token::Kind::end && !is_one_of(after, stop)) {
        unexpected(after);
      }
      node.children.push_back(std::move(child));
    }
    --depth_;
    return node;
  }

  Node and_or() {
    Node node = make(Kind::and_or);
    node.children.push_back(pipeline());
    while (!failed() && (lexer_.peek().is_op("&&") || lexer_.peek().is_op("||"))) {
      node.operators += lexer_.take().text[0];
      skip_newlines();
      node.children.push_back(pipeline());
    }
    if (node.children.size() == 1) return std::move(node.children.front());
    return node;
  }

  Node pipeline() {
    Node node = make(Kind::pipeline);
    while (!failed() && lexer_.peek().kind == Token::Kind::word) {
      if (lexer_.peek().text == "!") {
        node.negated = !node.negated;
      } else if (lexer_.peek().text != "time") {
        break;
      } else if (lexer_.peek_second().is_word("-p")) {
        lexer_.take();
      }
      lexer_.take();
    }
    node.children.push_back(command());
    while (!failed() && (lexer_.peek().is_op("|") || lexer_.peek().is_op("|&"))) {
      lexer_.take();
      skip_newlines();
      node.children.push_back(command());
    }
    if (node.children.size() == 1 && !node.negated) return std::move(node.children.front());
    return node;
  }

  Node command() {
    if (failed()) return make(Kind::simple);
    const Token token = lexer_.peek();
    if (token.is_op("(")) return parenthesis(token);
    if (token.kind != Token::Kind::word) {
      if (is_redirection(token)) return simple();
      unexpected(token);
      return make(Kind::simple);
    }
    Node node = compound(token.text);
    if (node.kind != Kind::simple) skip_redirections();
    return node;
  }

  Node compound(std::string_view word) {
    if (word == "{") return group();
    if (word == "if") return branch();
    if (word == "while" || word == "until") return loop();
    if (word == "for" || word == "select") return for_loop();
    if (word == "case") return choice();
    if (word == "[[") return test();
    if (word == "function") return function_keyword();
    const Words reserved = {"then", "do", "done", "fi", "elif", "else", "esac", "}"};
    if (std::find(reserved.begin(), reserved.end(), word) != reserved.end()) {
      unexpected(lexer_.peek());
      return make(Kind::simple);
    }
    return simple();
  }

  Node parenthesis(const Token& token) {
    Node node = make(Kind::subshell);
    if (auto inside = lexer_.take_arithmetic(token.begin)) {
      node.kind = Kind::arithmetic;
      add_word(node, std::move(*inside), token.line);
      return node;
    }
    lexer_.take();
    node.children.push_back(list({")"}));
    expect(")");
    skip_redirections();
    return node;
  }

  Node group() {
    Node node = make(Kind::group);
    lexer_.take();
    node.children.push_back(list({"}"}));
    expect("}");
    return node;
  }

  Node branch() {
    Node node = make(Kind::branch);
    lexer_.take();
    while (!failed()) {
      node.children.push_back(list({"then"}));
      expect("then");
      node.children.push_back(list({"elif", "else", "fi"}));
      if (failed()) break;
      const Token token = lexer_.take();
      if (token.is_word("elif")) continue;
      if (token.is_word("else")) {
        node.has_else = true;
        node.children.push_back(list({"fi"}));
        expect("fi");
      } else if (!token.is_word("fi")) {
        unexpected(token);
      }
      break;
    }
    return node;
  }

  Node loop() {
    Node node = make(Kind::loop);
    node.negated = lexer_.take().text == "until";
    node.children.push_back(list({"do"}));
    expect("do");
    node.children.push_back(list({"done"}));
    expect("done");
    return node;
  }

  Node for_loop() {
    Node node = make(Kind::for_words);
    node.name = lexer_.take().text;  // "select" runs until its user has enough: read once
    const bool select = node.name == "select";
    const Token name = lexer_.peek();
    if (name.is_op("(")) return for_arithmetic(std::move(node), name);
    if (name.kind != Token::Kind::word || name_length(name.text) != name.text.size()) {
      unexpected(name);
      return node;
    }
    node.name = lexer_.take().text;
    node.negated = select;
    skip_newlines();
    if (lexer_.peek().is_word("in")) {
      lexer_.take();
      node.has_words = true;
      while (lexer_.peek().kind == Token::Kind::word) {
        const Token word = lexer_.take();
        add_word(node, std::string(word.text), word.line);
      }
    }
    if (lexer_.peek().is_op(";")) lexer_.take();
    body(node);
    return node;
  }

  Node for_arithmetic(Node node, const Token& open) {
    auto inside = lexer_.take_arithmetic(open.begin);
    if (!inside) {
      unexpected(open);
      return node;
    }
    node.kind = Kind::for_arith;
    std::string_view rest = *inside;
    for (int part = 0; part < 3; ++part) {
      const std::size_t end = part < 2 ? rest.find(';') : std::string_view::npos;
      add_word(node, std::string(rest.substr(0, end)), open.line);
      if (end == std::string_view::npos) {
        rest = {};
      } else {
        rest.remove_prefix(end + 1);
      }
    }
    if (lexer_.peek().is_op(";")) lexer_.take();
    body(node);
    return node;
  }

  /// do … done, or { … }.
  void body(Node& node) {
    skip_newlines();
    if (failed()) return;
    const bool braces = lexer_.peek().is_word("{");
    expect(braces ? "{" : "do");
    node.children.push_back(list({braces ? "}" : "done"}));
    expect(braces ? "}" : "done");
  }

  Node choice() {
    Node node = make(Kind::choice);
    lexer_.take();
    const Token subject = lexer_.take();
    if (subject.kind != Token::Kind::word) {
      unexpected(subject);
      return node;
    }
    add_word(node, std::string(subject.text), subject.line);
    skip_newlines();
    expect("in");
    while (!failed()) {
      skip_newlines();
      if (lexer_.peek().is_word("esac")) break;
      node.children.push_back(choice_item());
    }
    expect("esac");
    return node;
  }

  Node choice_item() {
    std::vector<std::string> patterns;
    if (lexer_.peek().is_op("(")) lexer_.take();
    while (!failed()) {
      const Token pattern = lexer_.take();
      if (pattern.kind != Token::Kind::word) {
        unexpected(pattern);
        break;
      }
      patterns.emplace_back(pattern.text);
      const Token next = lexer_.take();
      if (next.is_op(")")) break;
      if (!next.is_op("|")) unexpected(next);
    }
    Node item = list({";;", ";&", ";;&", "esac"});
    item.words = std::move(patterns);
    const Token& end = lexer_.peek();
    if (!failed() && end.kind == Token::Kind::op) {
      item.negated = lexer_.take().text != ";;";  // falls through: what follows may run as well
    }
    return item;
  }

  Node function_keyword() {
    lexer_.take();
    Node node = make(Kind::function);
    const Token name = lexer_.take();
    if (name.kind != Token::Kind::word) {
      unexpected(name);
      return node;
    }
    node.name = name.text;
    if (lexer_.peek().is_op("(")) {
      lexer_.take();
      expect(")");
    }
    return function_body(std::move(node));
  }

  Node function_body(Node node) {
    skip_newlines();
    if (++depth_ > kMaxDepth) fail(node.line, "nested too deeply");
    node.children.push_back(command());
    --depth_;
    return node;
  }

  Node test() {
    Node node = make(Kind::test);
    lexer_.take();
    while (!failed()) {
      const Token token = lexer_.take();
      if (token.is_word("]]")) break;
      if (token.kind == Token::Kind::end || token.kind == Token::Kind::error) {
        unexpected(token);
      } else if (token.kind != Token::Kind::newline) {
        add_word(node, std::string(token.text), token.line);
      }
    }
    return node;
  }

  static void add_word(Node& node, std::string word, int line) {
    node.words.push_back(std::move(word));
    node.word_lines.push_back(line);
  }

  /// Returns where it ends. `input` becomes the target of < and <<<.
  std::size_t redirection(std::string* input = nullptr) {
    const Token op = lexer_.take();
    const Token target = lexer_.peek();
    if (target.kind != Token::Kind::word) {
      unexpected(target);
      return op.end;
    }
    lexer_.take();
    if (op.text == "<<" || op.text == "<<-") {
      lexer_.expect_here_document(unquoted(target.text), op.text == "<<-");
    }
    if (input != nullptr && (op.text == "<" || op.text == "<<<")) *input = target.text;
    return target.end;
  }

  void skip_redirections() {
    while (!failed() && is_redirection(lexer_.peek())) redirection();
  }

  Node simple() {
    Node node = make(Kind::simple);
    const std::size_t begin = lexer_.peek().begin;
    std::size_t end = begin;
    while (!failed()) {
      const Token token = lexer_.peek();
      if (token.kind == Token::Kind::word) {
        lexer_.take();
        add_word(node, std::string(token.text), token.line);
        end = token.end;
      } else if (is_redirection(token)) {
        end = redirection(&node.input);
      } else if (token.is_op("(") && node.words.size() == 1) {
        lexer_.take();
        expect(")");
        node.kind = Kind::function;
        node.name = std::move(node.words.front());
        node.words.clear();
        return function_body(std::move(node));
      } else {
        if (token.kind == Token::Kind::error) unexpected(token);
        break;
      }
    }
    node.text = one_line(lexer_.source(begin, std::min(end, begin + 2 * kMaxText)));
    return node;
  }

  Lexer lexer_;
  std::optional<SyntaxError> error_;
  std::size_t nodes_ = 0;
  std::size_t depth_ = 0;
  bool truncated_ = false;
};

}  // namespace

Tree parse_shell(std::string_view text, int first_line) {
  return Parser(text, first_line).parse();
}

}  // namespace berth::script
