// Time limits: what is read and shown reads back the same; times of --begin stop inside the text.
#include "text/duration.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto limit = text::parse_time_limit(input); limit && !limit->unlimited) {
    if (text::parse_time_limit(text::format_minutes(limit->minutes)) != limit) std::abort();
  }
  if (const auto limit = text::parse_limit_in_seconds(input); limit && *limit) {
    if (text::parse_limit_in_seconds(std::to_string(**limit) + 's') != limit) std::abort();
    if (text::spoken_seconds(**limit).empty()) std::abort();
  }
  std::size_t position = 0;
  text::valid_time_spec(input, position);
  if (position > input.size()) std::abort();
  return 0;
}
