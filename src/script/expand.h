// Expansion of words: quotes, parameters, arithmetic, braces, splitting. What depends on running
// something stays as it was written and is marked as not known.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "script/limits.h"
#include "script/variables.h"

namespace berth::script {

struct Field {
  std::string text;
  bool known = true;
  bool glob = false;  // has an unquoted *, ? or [: the shell would look for files
};

/// What a parameter stands for.
struct Parameter {
  std::vector<std::string> items;
  bool known = true;
  bool set = true;
  bool list = false;  // $@, ${a[@]}: fields of their own even inside quotes
};

class Expander {
 public:
  /// The output of $(text), or nullopt when it cannot be known.
  using Substitute = std::function<std::optional<std::string>(std::string_view text, int line)>;

  Expander(Variables& variables, Limits& limits, Substitute substitute)
      : variables_(variables), limits_(limits), substitute_(std::move(substitute)) {}

  /// One word of the script into any number of fields.
  std::vector<Field> fields(std::string_view word, int line);
  /// No splitting: values of assignments, subjects of case.
  Field single(std::string_view word, int line);
  /// As `single`, with quoted characters escaped so that they match literally.
  Field pattern(std::string_view word, int line);
  std::optional<std::int64_t> arithmetic(std::string_view expression, int line);

  std::vector<std::string> arguments;   // $1, $2, …
  bool unset_is_unknown = false;        // after `source`: unset variables may be set there
  std::optional<std::string> last_job;  // $!

 private:
  class Builder;

  void expand_into(Builder& out, std::string_view word, int line);
  std::size_t dollar(Builder& out, std::string_view word, std::size_t at, int line, bool quoted);
  void double_quoted(Builder& out, std::string_view inside, int line);
  void substitution(Builder& out, std::string_view source, std::string_view inside, int line,
                    bool quoted);
  Parameter named(std::string_view name);
  Parameter positional(std::string_view name);
  Parameter subscripted(const std::string& name, std::string_view subscript, int line);
  Parameter braced(std::string_view inside, int line);
  Parameter alternative(Parameter value, const std::string& name, std::string_view operation,
                        int line);
  Parameter transformed(Parameter value, std::string_view operation, int line);
  std::string substring(const std::string& text, std::string_view range, bool& known, int line);

  Variables& variables_;
  Limits& limits_;
  Substitute substitute_;
  std::size_t depth_ = 0;
};

/// {a,b} and {1..4} of one word, outside quotes. At least one result.
std::vector<std::string> expand_braces(std::string_view word, Limits& limits);

}  // namespace berth::script
