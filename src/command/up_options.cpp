#include "command/up_options.h"

#include <fmt/format.h>

#include "command/messages.h"
#include "command/option_words.h"

namespace berth::command {
namespace {

constexpr auto kUpOptions = std::to_array<OptionRow>({
    {"state", 0, Takes::value},
    {"help", 'h', Takes::nothing},
});

}  // namespace

int run_on_state(const std::string& name, std::string_view usage,
                 std::span<const std::string> words,
                 const std::function<int(const std::string& state)>& act) {
  const auto read = read_options(name, kUpOptions, words);
  if (!read) return print_error(read.error(), name);
  if (!read->operands.empty()) {
    return print_error(fail(Code::option_syntax, fmt::format("what is {}?", read->operands.front()),
                            name + " --help shows the options")
                           .error(),
                       name);
  }
  std::string state;
  for (const GivenOption& option : read->options) {
    if (option.row->name == "help") {
      fmt::print("{}", usage);
      return 0;
    }
    if (option.row->name == "state") state = *option.value;
  }
  return act(state);
}

}  // namespace berth::command
