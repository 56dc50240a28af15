#include "text/shown.h"

#include <algorithm>

namespace berth::text {

std::string shown(std::string_view s) {
  constexpr std::size_t kLongest = 60;
  std::string out(s.substr(0, kLongest));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return s.size() > kLongest ? out + "…" : out;
}

}  // namespace berth::text
