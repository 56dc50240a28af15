// Sizes and whole numbers: what is read and shown reads back the same.
#include "text/size.h"

#include <cstdlib>

#include "text/number.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto number = text::parse_number(input)) {
    if (text::parse_number(std::to_string(*number)) != number) std::abort();
  }
  if (const auto mb = text::parse_size_mb(input); mb && *mb < (std::uint64_t{1} << 30)) {
    if (text::parse_size_mb(text::format_mb(*mb)) != mb) std::abort();
  }
  return 0;
}
