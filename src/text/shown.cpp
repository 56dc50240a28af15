#include "text/shown.h"

#include "base/printable.h"

namespace berth::text {

std::string shown(std::string_view s) {
  constexpr std::size_t kLongest = 60;
  if (s.size() <= kLongest) return printable(s);
  std::size_t end = 0;
  // Not in the middle of a character.
  for (std::size_t next = 0; next <= kLongest; next += character_at(s, next).length) end = next;
  return printable(s.substr(0, end)) + "…";
}

}  // namespace berth::text
