// Text of strangers as it may reach a terminal or a log: what users, nodes and peers wrote must
// not move a cursor, change a title, hide itself, or begin a line of its own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth {

/// What a text may hold beside printable characters.
enum class Layout {
  value,  // nothing: it is a part of a line
  lines,  // newlines and tabs: it was put together from values by us
};

/// Valid UTF-8 that shows itself stays as it is, backslashes too. Written as an escape: control
/// characters (C0, DEL, C1), marks that change the direction of writing, separators of lines and
/// paragraphs, and bytes that are not UTF-8: \n \r \t \x1b \u202e.
std::string printable(std::string_view text, Layout layout = Layout::value);

/// The same for what was appended to `text` since `start`.
void make_printable(std::string& text, std::size_t start, Layout layout = Layout::value);

/// How many bytes of a reason (why a node is drained, what went wrong there) are kept and logged.
inline constexpr std::size_t kMostReason = 1024;

/// What fits into so many bytes (at least three): whole characters, and "..." where some are left
/// out.
std::string cut_text(std::string_view text, std::size_t most);

/// The character that begins text[at].
struct Character {
  char32_t code = 0;
  std::size_t length = 1;
  bool valid = true;  // false: a byte that is not UTF-8
  bool shows = true;  // it may stay as it is
};
Character character_at(std::string_view text, std::size_t at);

}  // namespace berth
