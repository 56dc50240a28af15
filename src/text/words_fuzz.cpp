// Words: a known word is its own nearest, and splitting loses no byte.
#include "text/words.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::size_t length = 0;
  std::vector<std::string> words;
  for (const std::string_view part : text::split(input, ',')) {
    length += part.size() + 1;
    if (words.size() < 50) words.emplace_back(part);
    if (text::trim(part).size() > part.size()) std::abort();
  }
  if (length != size + 1) std::abort();
  const std::string& first = words.front();
  const std::string found = text::nearest(first, words);
  if (!first.empty() && first.size() <= 64 && !text::equal_ignoring_case(found, first))
    std::abort();
  return 0;
}
