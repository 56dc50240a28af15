// Shell text as a tree. Words keep their source text, quotes and all: they are expanded when the
// command is reached, because the same body may be reached many times.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "script/script.h"

namespace berth::script {

struct Node {
  enum class Kind {
    simple,      // words; text
    pipeline,    // children
    and_or,      // children; operators between them: '&' for &&, '|' for ||
    list,        // children, one after another
    subshell,    // ( children[0] )
    group,       // { children[0] }
    for_words,   // name; words (has_words: `in` was there); children[0] = body
    for_arith,   // words = three expressions; children[0] = body
    loop,        // children = condition, body; negated = until
    branch,      // children = condition, body, condition, body, … [else]
    choice,      // case: words[0] = subject; children = bodies, whose words are the patterns
    function,    // name; children[0] = body
    test,        // [[ … ]]: words
    arithmetic,  // (( … )): words[0]
  };
  Kind kind = Kind::simple;
  int line = 0;
  bool background = false;  // ended by &
  bool negated = false;     // ! in front, or until
  bool has_words = false;
  bool has_else = false;
  std::string name;
  std::string operators;
  std::string text;
  std::string input;  // of a simple command: the target of `<` or `<<<`
  std::vector<std::string> words;
  std::vector<int> word_lines;
  std::vector<Node> children;
};

struct Tree {
  Node root;  // a list
  std::optional<SyntaxError> error;
  bool truncated = false;  // more nodes than kMaxNodes
};

inline constexpr std::size_t kMaxNodes = 50'000;
inline constexpr std::size_t kMaxText = 1024;  // bytes kept of a command's source text

/// Parses shell text whose first line is line `first_line` of the script. On an error the tree
/// holds the complete commands before it.
Tree parse_shell(std::string_view text, int first_line);

}  // namespace berth::script
