// Output patterns: expansion is bounded by the pattern and the longest file name.
#include "text/pattern.h"

#include <algorithm>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  text::PatternValues values;
  values.job_id = "123";
  values.job_name = "a-name-that-is-long-enough-to-grow";
  values.node = "gpu1.example.org";
  const std::string name = text::expand_pattern(input, values);
  if (name.size() > std::max<std::size_t>(size, 5000)) std::abort();
  if (input.find('%') == std::string_view::npos && !text::same_for_all_elements(input))
    std::abort();
  return 0;
}
