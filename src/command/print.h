// Standard output of the listing commands.
#pragma once

#include <string_view>

namespace berth::command {

/// Writes all of it at once; 0, or 1 when nobody reads.
int print_text(std::string_view text);

}  // namespace berth::command
