// Errors as values. A refusal carries the lines Slurm would print, our hint, and the exit code, so
// that commands only print and never decide.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

enum class Code {
#define BERTH_CODE(name, text) name,
#include "base/codes.def"
#undef BERTH_CODE
};

/// Slurm's text for a code, e.g. "Requested node configuration is not available".
std::string_view slurm_text(Code code);
/// The code's name as written in codes.def, for JSON and logs.
std::string_view code_name(Code code);

/// How a line is introduced on stderr, for a command `srun`:
///   bare    "text"                (getopt's second line, time parser)
///   plain   "srun: text"
///   warning "srun: warning: text"
///   error   "srun: error: text"
///   fatal   "srun: fatal: text"
enum class Severity { bare, plain, warning, error, fatal };

struct Message {
  Severity severity = Severity::error;
  std::string text;
  friend bool operator==(const Message&, const Message&) = default;
};

/// One line as `command` prints it, without the newline.
std::string render(const Message& message, std::string_view command);

/// Why something was refused. `messages` are Slurm's lines in order; `hint` is ours (no prefix).
struct Error {
  Code code = Code::bad_value;
  std::vector<Message> messages;
  std::string hint;
  int exit_code = 1;

  /// The text of the first message, or the code's text when there is none.
  [[nodiscard]] std::string_view what() const;
};

template <class T>
using Result = std::expected<T, Error>;

/// An error of one line "error: text".
std::unexpected<Error> fail(Code code, std::string text, std::string hint = {}, int exit_code = 1);
/// An error of one line "fatal: text".
std::unexpected<Error> fail_fatal(Code code, std::string text, std::string hint = {},
                                  int exit_code = 1);
/// Pass an error on to another Result type.
inline std::unexpected<Error> pass(Error&& error) {
  return std::unexpected<Error>(std::move(error));
}
inline std::unexpected<Error> pass(const Error& error) {
  return std::unexpected<Error>(error);
}

}  // namespace berth
