// What --help prints.
#pragma once

#include <string_view>

namespace berth::command {

std::string_view scontrol_help();
std::string_view scancel_help();

}  // namespace berth::command
