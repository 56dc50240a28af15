#include "base/result.h"

#include <array>

namespace berth {
namespace {

struct CodeRow {
  std::string_view name;
  std::string_view text;
};

constexpr std::array kCodes = {
#define BERTH_CODE(name, text) CodeRow{#name, text},
#include "base/codes.def"
#undef BERTH_CODE
};

std::unexpected<Error> one_line(Code code, Severity severity, std::string text, std::string hint,
                                int exit_code) {
  Error error;
  error.code = code;
  error.messages.push_back({severity, std::move(text)});
  error.hint = std::move(hint);
  error.exit_code = exit_code;
  return std::unexpected<Error>(std::move(error));
}

}  // namespace

std::string_view slurm_text(Code code) {
  return kCodes[static_cast<std::size_t>(code)].text;
}
std::string_view code_name(Code code) {
  return kCodes[static_cast<std::size_t>(code)].name;
}

std::string render(const Message& message, std::string_view command) {
  std::string line;
  if (message.severity != Severity::bare) line.append(command).append(": ");
  switch (message.severity) {
    case Severity::warning:
      line += "warning: ";
      break;
    case Severity::error:
      line += "error: ";
      break;
    case Severity::fatal:
      line += "fatal: ";
      break;
    case Severity::bare:
    case Severity::plain:
      break;
  }
  return line + message.text;
}

std::string_view Error::what() const {
  return messages.empty() ? slurm_text(code) : std::string_view(messages.front().text);
}

std::unexpected<Error> fail(Code code, std::string text, std::string hint, int exit_code) {
  return one_line(code, Severity::error, std::move(text), std::move(hint), exit_code);
}

std::unexpected<Error> fail_fatal(Code code, std::string text, std::string hint, int exit_code) {
  return one_line(code, Severity::fatal, std::move(text), std::move(hint), exit_code);
}

}  // namespace berth
