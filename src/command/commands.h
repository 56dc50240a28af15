// The table of commands (commands.def) as data.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "request/request.h"

namespace berth::command {

using Run = int (*)(std::span<const std::string> words, const request::Environment& environment);

struct CommandRow {
  std::string_view name;
  Run run;
  std::string_view help;
};

std::span<const CommandRow> command_rows();
/// nullptr when there is no such command.
const CommandRow* find_command(std::string_view name);

}  // namespace berth::command
