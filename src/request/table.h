// The rows of options.def as data: names, letters, arguments, input variables, status.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "request/options.h"
#include "request/request.h"

namespace berth::request {

enum class Argument : std::uint8_t { none, required, optional };

enum class Status : std::uint8_t {
  honoured,  // the plan follows it
  recorded,  // checked, and kept for whoever queues and starts the job
  refused,   // berth cannot do it and says so
  no_op,     // does nothing, in Slurm too or because berth needs no such knob
  told,      // berth cannot do it, runs the job without, and says so
};

/// Sets of commands, as bits.
using Commands = std::uint8_t;
inline constexpr Commands kSbatch = 1;
inline constexpr Commands kSalloc = 2;
inline constexpr Commands kSrun = 4;
Commands bit_of(Command command);

struct OptionRow {
  Opt opt;
  std::string_view name;  // without the dashes
  char letter;            // 0 = none
  Commands letter_in;
  Argument argument;
  Commands commands;
  std::string_view variables;  // "BAR:GRES R:=SRUN_OUTPUT", see options.def
  Status status;
  std::string_view note;
};

struct OptionAlias {
  Opt opt;
  std::string_view name;
  Commands commands;
};

std::span<const OptionRow> option_rows();
std::span<const OptionAlias> option_aliases();
const OptionRow& row_of(Opt opt);

/// "--ntasks".
std::string dashed(Opt opt);
/// Whole names of the input variables of an option, in the order they are looked at.
std::vector<std::string> variables_of(const OptionRow& row, Command command);
/// Long names, aliases included, that `command` knows; sorted.
std::vector<std::string> long_names(Command command);

/// docs/options.md, as it should be.
std::string options_page();

}  // namespace berth::request
