// Any bytes as a list: what is accepted must be written as something that reads the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "survey/survey.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto line = survey::read_line(input.substr(0, input.find('\n')))) {
    const std::string text = survey::write_line(*line);
    const auto again = survey::read_line(std::string_view(text).substr(0, text.size() - 1));
    if (!again || survey::write_line(*again) != text) std::abort();
  }
  if (const auto list = survey::read_survey(input)) {
    const std::string text = survey::write_survey(*list);
    const auto again = survey::read_survey(text);
    if (!again || survey::write_survey(*again) != text) std::abort();
  }
  return 0;
}
