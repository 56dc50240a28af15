// Text of one option to typed fields of a Request, with Slurm's words for what is wrong.
//
// Every occurrence of an option is checked when it is met, even if a later one replaces it; the
// Request is built afterwards from the options that are left. Both go through the same functions;
// generic resources are only looked at while building, where Slurm reports them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "request/parse.h"
#include "request/table.h"

namespace berth::request {

struct Value {
  Opt opt;
  std::string_view text;  // "" for an optional argument that was left out
  Command command;
  const Surroundings* around;
  bool building = false;  // false: only check
  bool step = false;      // srun inside a job
  std::vector<Message>* warnings;
};

using Applied = Result<void>;
using Apply = Applied (*)(const Value& value, Request& request);

/// Checks the text and, when building, stores it.
Applied apply_value(const Value& value, Request& request);

/// nullptr when the option is not of that group.
Apply size_value(Opt opt);      // counts, memory, sharing
Apply resource_value(Opt opt);  // generic resources and their binding
Apply place_value(Opt opt);     // nodes, layout, CPU binding
Apply queue_value(Opt opt);     // time, signals, mail and other bookkeeping
Apply step_value(Opt opt);      // what only srun has, and names and files

/// "Invalid --time specification", exit code 255.
std::unexpected<Error> invalid_value(const Value& value, std::string allowed);
/// "Invalid numeric value "x" for --ntasks.", exit code 1.
std::unexpected<Error> invalid_number(const Value& value, std::string allowed);
/// "Invalid --gpu-bind argument: x", exit code 255.
std::unexpected<Error> invalid_argument(const Value& value, std::string allowed);
/// Not an error but an answer: lines to print, exit code 0.
std::unexpected<Error> answer(std::vector<std::string> lines);

/// A refusal in the words of a submission, e.g. "Batch job submission failed: <text>".
std::unexpected<Error> submission_failed(Command command, Code code, std::string text,
                                         std::string hint);

/// An option that is either there or not.
template <auto Field>
Applied flag(const Value&, Request& request) {
  request.*Field = true;
  return {};
}
/// A whole number, or nothing where the option allows that; only checked.
Applied count_from_zero(const Value& value, Request& request);

/// A whole number from `least` to INT_MAX.
Result<std::uint32_t> number_value(const Value& value, std::uint32_t least);

/// Prefix of the error texts about one element of a list: "Failed to validate z, offending
/// character is z"; nullopt when the list is sound. `hexadecimal`: masks instead of numbers.
std::optional<std::string> list_complaint(std::string_view list, bool hexadecimal);

/// Whether a --gres list asks for GPUs (a zero count counts as asking).
bool names_gpu(std::string_view gres);

}  // namespace berth::request
