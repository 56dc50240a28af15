// One request of a task and one answer to it, in the two spellings: PMI-1 "cmd=get key=a" and PMI-2
// "cmd=kvs-get;key=a;" with every ';' of a value written twice.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::pmi {

using Field = std::pair<std::string, std::string>;

struct Message {
  std::string command;
  std::vector<Field> fields;  // as they came, without cmd

  /// The first of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  /// The first of that name, or "".
  [[nodiscard]] std::string_view get(std::string_view name) const {
    return find(name).value_or(std::string_view{});
  }
};

/// A line of PMI-1. A word without '=' belongs to the value before it, and values that users write
/// (value, port, messages) go on to the end of the line.
Result<Message> parse_line(std::string_view line);
/// A message of PMI-2, without its length.
Result<Message> parse_counted(std::string_view text);

using AnswerFields = std::vector<std::pair<std::string_view, std::string_view>>;

/// An answer of PMI-1, with its newline; a newline in a value becomes a blank.
std::string line_of(std::string_view command, const AnswerFields& fields);
/// An answer of PMI-2, with its length. `thread`: the thrid of the request.
std::string counted_of(std::string_view command, const std::optional<std::string>& thread,
                       const AnswerFields& fields);

}  // namespace berth::pmi
