// What message.h promises.
#include "pmi/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace berth::pmi {
namespace {

constexpr std::array<std::string_view, 5> kToEndOfLine = {"value", "port", "error_msg", "message",
                                                          "msg"};

/// The value up to the ';' that ends it, which is taken off too.
std::string take_value(std::string_view& text) {
  std::string value;
  for (;;) {
    const std::size_t end = std::min(text.find(';'), text.size());
    value += text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!text.starts_with(';')) return value;
    value += ';';
    text.remove_prefix(1);
  }
}

Result<Message> with_command(std::vector<Field> fields) {
  const auto command = std::ranges::find(fields, std::string_view("cmd"), &Field::first);
  if (command == fields.end() || command->second.empty()) {
    return fail(Code::protocol, "a message has no command");
  }
  Message message;
  message.command = std::move(command->second);
  fields.erase(command);
  message.fields = std::move(fields);
  return message;
}

}  // namespace

std::optional<std::string_view> Message::find(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &Field::first);
  if (found == fields.end()) return std::nullopt;
  return found->second;
}

Result<Message> parse_line(std::string_view line) {
  std::vector<Field> fields;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (equals == std::string_view::npos) {
      if (fields.empty() && !word.empty()) return fail(Code::protocol, "a line has no command");
      if (!word.empty()) fields.back().second.append(" ").append(word);
    } else if (std::ranges::find(kToEndOfLine, name) != kToEndOfLine.end()) {
      fields.emplace_back(name, line.substr(equals + 1));
      break;
    } else {
      fields.emplace_back(name, word.substr(equals + 1));
    }
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return with_command(std::move(fields));
}

Result<Message> parse_counted(std::string_view text) {
  std::vector<Field> fields;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return fail(Code::protocol, "a field has no value");
    std::string name(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    std::string value = take_value(text);
    fields.emplace_back(std::move(name), std::move(value));
  }
  return with_command(std::move(fields));
}

std::string line_of(std::string_view command, const AnswerFields& fields) {
  std::string out = fmt::format("cmd={}", command);
  for (const auto& [name, value] : fields) out.append(" ").append(name).append("=").append(value);
  std::ranges::replace(out, '\n', ' ');
  return out += '\n';
}

std::string counted_of(std::string_view command, const std::optional<std::string>& thread,
                       const AnswerFields& fields) {
  std::string body;
  const auto add = [&](std::string_view name, std::string_view value) {
    body.append(name).append("=");
    for (const char c : value) body.append(c == ';' ? 2 : 1, c);
    body += ';';
  };
  add("cmd", command);
  if (thread) add("thrid", *thread);
  for (const auto& [name, value] : fields) add(name, value);
  return fmt::format("{:6}", body.size()) + body;
}

}  // namespace berth::pmi
