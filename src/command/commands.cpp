#include "command/commands.h"

#include <array>

namespace berth::command {

#define BERTH_COMMAND(name, function, help) \
  int function(std::span<const std::string> words, const request::Environment& environment);
#include "command/commands.def"
#undef BERTH_COMMAND

namespace {

constexpr std::array kCommandRows = {
#define BERTH_COMMAND(name, function, help) CommandRow{name, function, help},
#include "command/commands.def"
#undef BERTH_COMMAND
};

}  // namespace

std::span<const CommandRow> command_rows() {
  return kCommandRows;
}

const CommandRow* find_command(std::string_view name) {
  for (const CommandRow& row : kCommandRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace berth::command
