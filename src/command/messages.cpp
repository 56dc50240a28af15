#include "command/messages.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/printable.h"
#include "base/process.h"

namespace berth::command {
namespace {

/// Straight to the descriptor: a line is never torn, and nothing is left in a buffer when the
/// command is killed. Where that fails nobody is left to tell.
void write_out(int fd, std::string_view text) {
  (void)write_all(fd, text);
}

/// A message stays one line, whatever is in it.
std::string line_of(const Message& message, std::string_view command) {
  return printable(render(message, command)) + "\n";
}

}  // namespace

std::vector<Message> messages_of(const google::protobuf::RepeatedPtrField<wire::Line>& lines) {
  std::vector<Message> messages;
  for (const wire::Line& line : lines) messages.push_back(wire::from_line(line));
  return messages;
}

void print_message(const Message& message, std::string_view command) {
  write_out(STDERR_FILENO, line_of(message, command));
}

void print_messages(const std::vector<Message>& messages, std::string_view command) {
  for (const Message& message : messages) print_message(message, command);
}

void print_new_messages(const std::vector<Message>& messages, const std::vector<Message>& told,
                        std::string_view command) {
  for (const Message& message : messages) {
    if (std::ranges::find(told, message) == told.end()) print_message(message, command);
  }
}

void print_info(std::string_view text, std::string_view command) {
  print_message({Severity::plain, std::string(text)}, command);
}

void print_hint(std::string_view text) {
  print_message({Severity::plain, std::string(text)}, "berth");
}

int print_error(const Error& error, std::string_view command) {
  std::string lines;
  if (error.messages.empty() && error.exit_code != 0) {
    lines = line_of({Severity::error, std::string(error.what())}, command);
  }
  for (const Message& message : error.messages) lines += line_of(message, command);
  if (!error.hint.empty()) lines += "berth: " + printable(error.hint) + "\n";
  write_out(error.exit_code == 0 ? STDOUT_FILENO : STDERR_FILENO, lines);
  return error.exit_code;
}

}  // namespace berth::command
