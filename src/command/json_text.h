// JSON written as it is made, in the layout of Slurm's --json: two blanks a level, empty arrays on
// two lines, "/" escaped.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "request/request.h"

namespace berth::command {

class JsonText {
 public:
  void begin_object(std::string_view key = {});
  void end_object();
  void begin_array(std::string_view key = {});
  void end_array();

  void text(std::string_view key, std::string_view value);
  void number(std::string_view key, std::int64_t value);
  void unsigned_number(std::string_view key, std::uint64_t value);
  void real(std::string_view key, double value);
  void boolean(std::string_view key, bool value);
  void null(std::string_view key);
  /// An element of an array.
  void item(std::string_view value);

  /// {"set", "infinite", "number"}.
  void set_number(std::string_view key, std::int64_t value);
  void unset_number(std::string_view key);
  void infinite_number(std::string_view key);
  /// A number that is unset or infinite when there is none.
  void number_or_unset(std::string_view key, std::optional<std::int64_t> value);
  void number_or_infinite(std::string_view key, std::optional<std::int64_t> value);
  /// An array of texts.
  void words(std::string_view key, std::span<const std::string> values);

  /// The whole document, with its newline.
  [[nodiscard]] std::string done() &&;

 private:
  void begin_value(std::string_view key);
  void end_level(char bracket);
  void escape(std::string_view text);
  void append_escape(char32_t code);
  void number_object(std::string_view key, bool set, bool infinite, std::int64_t value);

  std::string out_;
  int depth_ = 0;
  bool first_ = true;
};

/// What every document says about itself.
struct JsonMeta {
  std::string user;
  std::string group;
  std::vector<std::string> command;
  std::string cluster;
};
JsonMeta json_meta(std::string_view command, std::span<const std::string> words,
                   const request::Environment& environment, std::string_view cluster);
/// "meta", "errors" and "warnings": the end of every document.
void append_meta(JsonText& json, const JsonMeta& meta);

}  // namespace berth::command
