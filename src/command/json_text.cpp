#include "command/json_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/printable.h"
#include "command/show_text.h"

namespace berth::command {

void JsonText::begin_value(std::string_view key) {
  if (depth_ > 0) {
    if (!first_) out_ += ',';
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  }
  if (!key.empty()) {
    escape(key);
    out_ += ": ";
  }
  first_ = false;
}

void JsonText::end_level(char bracket) {
  --depth_;
  out_ += '\n';
  out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  out_ += bracket;
  first_ = false;
}

void JsonText::begin_object(std::string_view key) {
  begin_value(key);
  out_ += '{';
  ++depth_;
  first_ = true;
}
void JsonText::end_object() {
  end_level('}');
}
void JsonText::begin_array(std::string_view key) {
  begin_value(key);
  out_ += '[';
  ++depth_;
  first_ = true;
}
void JsonText::end_array() {
  end_level(']');
}

/// Nothing of another's text acts on the terminal that shows it, and what is not UTF-8 becomes
/// U+FFFD: JSON has no bytes.
void JsonText::escape(std::string_view text) {
  out_ += '"';
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\\' || c == '/') {
      out_ += '\\';
      out_ += c;
      ++at;
      continue;
    }
    const Character character = character_at(text, at);
    if (character.shows) {
      out_.append(text, at, character.length);
    } else {
      append_escape(character.code);
    }
    at += character.length;
  }
  out_ += '"';
}

void JsonText::append_escape(char32_t code) {
  switch (code) {
    case '\n':
      out_ += "\\n";
      return;
    case '\t':
      out_ += "\\t";
      return;
    case '\r':
      out_ += "\\r";
      return;
    default:
      break;
  }
  auto number = static_cast<unsigned>(code);
  if (number > 0xffff) {
    number -= 0x10000;
    out_ += fmt::format("\\u{:04x}", 0xd800 + (number >> 10U));
    number = 0xdc00 + (number & 0x3ffU);
  }
  out_ += fmt::format("\\u{:04x}", number);
}

void JsonText::text(std::string_view key, std::string_view value) {
  begin_value(key);
  escape(value);
}
void JsonText::number(std::string_view key, std::int64_t value) {
  begin_value(key);
  append_number(out_, value);
}
void JsonText::unsigned_number(std::string_view key, std::uint64_t value) {
  begin_value(key);
  append_unsigned(out_, value);
}
void JsonText::real(std::string_view key, double value) {
  begin_value(key);
  out_ += fmt::format("{:.1f}", value);
}
void JsonText::boolean(std::string_view key, bool value) {
  begin_value(key);
  out_ += value ? "true" : "false";
}
void JsonText::null(std::string_view key) {
  begin_value(key);
  out_ += "null";
}
void JsonText::item(std::string_view value) {
  begin_value({});
  escape(value);
}

void JsonText::number_object(std::string_view key, bool set, bool infinite, std::int64_t value) {
  begin_object(key);
  boolean("set", set);
  boolean("infinite", infinite);
  number("number", value);
  end_object();
}
void JsonText::set_number(std::string_view key, std::int64_t value) {
  number_object(key, true, false, value);
}
void JsonText::unset_number(std::string_view key) {
  number_object(key, false, false, 0);
}
void JsonText::infinite_number(std::string_view key) {
  number_object(key, false, true, 0);
}
void JsonText::number_or_unset(std::string_view key, std::optional<std::int64_t> value) {
  number_object(key, value.has_value(), false, value.value_or(0));
}
void JsonText::number_or_infinite(std::string_view key, std::optional<std::int64_t> value) {
  number_object(key, value.has_value(), !value, value.value_or(0));
}
void JsonText::words(std::string_view key, std::span<const std::string> values) {
  begin_array(key);
  for (const std::string& value : values) item(value);
  end_array();
}

std::string JsonText::done() && {
  out_ += '\n';
  return std::move(out_);
}

JsonMeta json_meta(std::string_view command, std::span<const std::string> words,
                   const request::Environment& environment, std::string_view cluster) {
  JsonMeta meta;
  // The programs are static and know no name service: the environment has to do.
  const auto user = environment.find("USER");
  meta.user = user != environment.end() ? user->second : std::to_string(geteuid());
  meta.group = std::to_string(getegid());
  meta.command.emplace_back(command);
  meta.command.insert(meta.command.end(), words.begin(), words.end());
  meta.cluster = cluster;
  return meta;
}

void append_meta(JsonText& json, const JsonMeta& meta) {
  json.begin_object("meta");
  json.begin_object("plugin");
  json.text("type", "");
  json.text("name", "");
  json.text("data_parser", "data_parser/v0.0.46");
  json.text("accounting_storage", "");
  json.end_object();
  json.begin_object("client");
  json.text("source", "");
  json.text("user", meta.user);
  json.text("group", meta.group);
  json.end_object();
  json.words("command", meta.command);
  json.begin_object("slurm");
  json.begin_object("version");
  json.text("major", "26");
  json.text("micro", "0");
  json.text("minor", "11");
  json.end_object();
  json.text("release", "26.11.0");
  json.text("cluster", meta.cluster);
  json.end_object();
  json.end_object();
  json.begin_array("errors");
  json.end_array();
  json.begin_array("warnings");
  json.end_array();
}

}  // namespace berth::command
