// Any words, any variables: parse() answers, and first_argument() and files_wanted() agree with it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "request/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::request;
  if (size < 2) return 0;
  const Command command = static_cast<Command>(data[0] % 3);
  Surroundings around;
  around.inside_job = (data[1] & 1) != 0;
  around.multiple_sharing_gres = (data[1] & 2) != 0;
  around.files["./f"] = "gpu1\ngpu[2-3]*2 # remark\n";
  std::vector<std::string> words;
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // "S…=…" is a variable of the surroundings.
    const std::size_t equals = word.find('=');
    if (word.starts_with('S') && equals != std::string_view::npos) {
      around.environment[std::string(word.substr(0, equals))] = word.substr(equals + 1);
    } else {
      words.emplace_back(word);
    }
  }
  const auto parsed = parse(command, words, "#!/bin/sh\n", around);
  const std::size_t first = first_argument(command, words);
  if (first > words.size()) __builtin_trap();
  if (parsed && parsed->components.empty()) __builtin_trap();
  if (!parsed && parsed.error().messages.empty()) __builtin_trap();
  (void)files_wanted(command, words, "", around.environment);
  return 0;
}
