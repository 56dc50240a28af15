#include "base/printable.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace berth {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

struct Range {
  char32_t first;
  char32_t last;
};
/// Beyond ASCII: what acts on the text around it instead of showing itself.
constexpr std::array kActing = {
    Range{0x80, 0x9f},        // C1, of which terminals take some for ESC [
    Range{0x61c, 0x61c},      // Arabic letter mark
    Range{0x200e, 0x200f},    // left-to-right and right-to-left mark
    Range{0x2028, 0x202e},    // separators of lines and paragraphs; embeddings and overrides
    Range{0x2066, 0x2069},    // isolates
    Range{0xfeff, 0xfeff},    // byte order mark
    Range{0xfff9, 0xfffb},    // interlinear annotation
    Range{0xe0000, 0xe007f},  // tags, which show nothing
};

bool acts(char32_t code) {
  for (const Range& range : kActing) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

void append_hex(std::string& out, std::uint32_t value, std::size_t digits) {
  while (digits-- > 0) out += kHex[(value >> (4 * digits)) & 0xfU];
}

/// How many bytes of the text that was.
std::size_t append_escape(std::string& out, std::string_view text, std::size_t at) {
  const Character character = character_at(text, at);
  const auto code = static_cast<std::uint32_t>(character.code);
  if (code == '\n') {
    out += "\\n";
  } else if (code == '\r') {
    out += "\\r";
  } else if (code == '\t') {
    out += "\\t";
  } else if (character.length == 1) {
    out += "\\x";
    append_hex(out, byte_at(text, at), 2);
  } else {
    const bool wide = code > 0xffff;
    out += wide ? "\\U" : "\\u";
    append_hex(out, code, wide ? 8 : 4);
  }
  return character.length;
}

bool stays(const Character& character, Layout layout) {
  return character.shows || (layout == Layout::lines && character.valid &&
                             (character.code == '\n' || character.code == '\t'));
}

/// Where the first character is that cannot stay.
std::size_t first_acting(std::string_view text, std::size_t at, Layout layout) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHigh = 0x8080808080808080;
  while (at < text.size()) {
    // Eight bytes at once, while all are printable ASCII: most texts are nothing else.
    while (text.size() - at >= 8) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, text.data() + at, 8);
      const std::uint64_t below_blank = (eight - kOnes * 0x20) & ~eight;
      const std::uint64_t no_del = eight ^ (kOnes * 0x7f);
      const std::uint64_t del = (no_del - kOnes) & ~no_del;
      if (((eight | below_blank | del) & kHigh) != 0) break;
      at += 8;
    }
    if (at == text.size()) break;
    const Character character = character_at(text, at);
    if (!stays(character, layout)) return at;
    at += character.length;
  }
  return text.size();
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return {.code = first, .shows = first >= 0x20 && first != 0x7f};
  constexpr Character kNone{.code = 0xfffd, .valid = false, .shows = false};
  // Neither too long, nor half a surrogate, nor beyond U+10FFFF.
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < length) return kNone;
  char32_t code = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned next = byte_at(text, at + i);
    if ((next & 0xc0U) != 0x80U) return kNone;
    code = (code << 6U) | (next & 0x3fU);
  }
  const char32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least || surrogate || code > 0x10ffff) return kNone;
  return {.code = code, .length = length, .shows = !acts(code)};
}

void make_printable(std::string& text, std::size_t start, Layout layout) {
  const std::size_t from = first_acting(text, start, layout);
  if (from == text.size()) return;
  const std::string rest = text.substr(from);
  text.resize(from);
  for (std::size_t at = 0; at < rest.size();) {
    const std::size_t next = first_acting(rest, at, layout);
    text.append(rest, at, next - at);
    at = next;
    if (at < rest.size()) at += append_escape(text, rest, at);
  }
}

std::string cut_text(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most - 3;
  // Not in the middle of a character, which has at most three bytes after its first.
  for (int i = 0; i < 3 && end > 0 && (byte_at(text, end) & 0xc0U) == 0x80U; ++i) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string printable(std::string_view text, Layout layout) {
  std::string out(text);
  make_printable(out, 0, layout);
  return out;
}

}  // namespace berth
