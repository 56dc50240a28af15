// Expanding any text is bounded, and what expands survives compression: expand(compress(x)) is x,
// sorted and without duplicates; in given order it is x itself.
#include "text/hostlist.h"

#include <algorithm>
#include <cstdlib>

#include "base/natural.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto names = text::expand_hostlist(input);
  if (!names) {
    if (names.error().what().empty()) std::abort();
    return 0;
  }
  if (names->size() > text::kMaxHosts) std::abort();
  // The round trip sorts twice, which is slow in an instrumented build: long lists prove no more.
  if (names->size() > 2048) return 0;
  const auto same = text::expand_hostlist(text::compress_hostlist_unsorted(*names));
  if (!same || *same != *names) std::abort();
  std::vector<std::string> sorted = *names;
  std::sort(sorted.begin(), sorted.end(), natural_less);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const auto back = text::expand_hostlist(text::compress_hostlist(*names));
  if (!back || *back != sorted) std::abort();
  return 0;
}
