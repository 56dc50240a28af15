// The command line that berth down and berth status share: [--state DIR], --help.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace berth::command {

/// Reads the words of `name` ("berth down"), prints help or what is wrong, or runs `act` with the
/// state directory ("" = the default one). Returns the exit status.
int run_on_state(const std::string& name, std::string_view usage,
                 std::span<const std::string> words,
                 const std::function<int(const std::string& state)>& act);

}  // namespace berth::command
