// Signal names and numbers as options write them: USR1, SIGUSR1, 10.
#pragma once

#include <optional>
#include <string_view>

namespace berth::request {

/// nullopt when it is no signal; names in any case, with or without SIG.
std::optional<int> parse_signal(std::string_view text);

}  // namespace berth::request
