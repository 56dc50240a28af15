// Standard output of the listing commands.
#pragma once

#include <string_view>

namespace berth::command {

/// Writes all of it at once; 0, or 1 when nobody reads. What strangers may have written reaches no
/// terminal as it is: see base/printable.h; newlines and tabs are ours.
int print_text(std::string_view text);

/// The same for a table whose values are escaped already: between them stands what the caller gave
/// (--format, --delimiter), which may be anything.
int print_table(std::string_view text);

}  // namespace berth::command
