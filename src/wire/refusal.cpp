#include "wire/refusal.h"

#include <algorithm>

namespace berth::wire {
namespace {

Code code_named(const std::string& name) {
#define BERTH_CODE(code, text) \
  if (name == #code) return Code::code;
#include "base/codes.def"
#undef BERTH_CODE
  return Code::bad_value;
}

}  // namespace

Line to_line(const Message& message) {
  Line line;
  line.set_severity(static_cast<std::uint32_t>(message.severity));
  line.set_text(message.text);
  return line;
}

Message from_line(const Line& line) {
  const auto highest = static_cast<std::uint32_t>(Severity::fatal);
  return {static_cast<Severity>(std::min(line.severity(), highest)), line.text()};
}

Refusal to_refusal(const Error& error) {
  Refusal refusal;
  refusal.set_code(std::string(code_name(error.code)));
  for (const Message& message : error.messages) *refusal.add_lines() = to_line(message);
  refusal.set_hint(error.hint);
  refusal.set_exit_code(error.exit_code);
  return refusal;
}

Error from_refusal(const Refusal& refusal) {
  Error error;
  error.code = code_named(refusal.code());
  for (const Line& line : refusal.lines()) error.messages.push_back(from_line(line));
  error.hint = refusal.hint();
  error.exit_code = refusal.exit_code();
  return error;
}

}  // namespace berth::wire
