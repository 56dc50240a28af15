// A piece of the user's text as a message may show it: bounded, and printable (base/printable.h).
#pragma once

#include <string>
#include <string_view>

namespace berth::text {

std::string shown(std::string_view s);

}  // namespace berth::text
