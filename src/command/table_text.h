// Tables of sacct, sacctmgr and sshare: the columns of --format=name[%width],…, cells that are
// padded or cut with a "+", and the lines that -p, -P and -n ask for.
#pragma once

#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/words.h"

namespace berth::command {

struct TableStyle {
  enum class Kind { columns, parsable, parsable2 };
  Kind kind = Kind::columns;
  bool header = true;
  std::string delimiter = "|";
};

/// A column of a table whose fields have a `name`, a title_of() and a `width` (negative: the value
/// stands on the left).
template <class Field>
struct TableColumn {
  const Field* field = nullptr;
  int width = 0;
};

/// Padded, or cut with a "+" as the last character; never in the middle of a character of UTF-8.
void append_fitted(std::string& out, std::string_view value, int width);
/// One cell, whose value somebody else may have written, and what separates it from the next one.
void append_cell(const TableStyle& style, std::string_view raw, int width, bool last,
                 std::string& out);
/// The dashes below a title.
void append_dashes(int width, std::string& out);

/// The header, in columns with a line of dashes below; nothing when the style has none.
template <class Field>
void append_table_header(const TableStyle& style, const std::vector<TableColumn<Field>>& columns,
                         std::string& out) {
  if (!style.header) return;
  const bool fitted = style.kind == TableStyle::Kind::columns;
  for (const TableColumn<Field>& column : columns) {
    // Values are cut with a "+", titles without.
    const std::string_view title = title_of(*column.field);
    const auto width = static_cast<std::size_t>(std::abs(column.width));
    append_cell(style, fitted ? title.substr(0, width) : title, column.width,
                &column == &columns.back(), out);
  }
  out += '\n';
  if (!fitted) return;
  for (const TableColumn<Field>& column : columns) append_dashes(column.width, out);
  out += '\n';
}

/// --helpformat: the names of all fields, four in a line.
template <class Field>
std::string field_names(std::span<const Field> table) {
  std::string out;
  std::size_t before = 0;
  for (const Field& field : table) {
    if (before > 0) out += before % 4 == 0 ? '\n' : ' ';
    append_fitted(out, field.name, -19);
    ++before;
  }
  return out + '\n';
}

/// A field as the user wrote it.
struct AskedField {
  std::string_view name;
  std::optional<int> width;
};
/// "name[%width],…"; the error is a width that is no number, or no field at all.
Result<std::vector<AskedField>> split_fields(std::string_view text);
/// "Invalid field requested" with the nearest of the known names, else the hint.
std::unexpected<Error> unknown_field(std::string_view name, std::span<const std::string_view> known,
                                     std::string_view hint);

/// By name without case; a beginning of a name stands for the first field that has it.
template <class Field>
const Field* find_field(std::span<const Field> table, std::string_view name) {
  const Field* found = nullptr;
  for (const Field& field : table) {
    if (text::equal_ignoring_case(field.name, name)) return &field;
    if (found == nullptr && !name.empty() &&
        text::equal_ignoring_case(field.name.substr(0, name.size()), name)) {
      found = &field;
    }
  }
  return found;
}

/// The columns of --format; "ALL" is every field. The hint says where the fields are listed.
template <class Field>
Result<std::vector<TableColumn<Field>>> parse_table_format(std::string_view text,
                                                           std::span<const Field> table,
                                                           std::string_view hint) {
  const Result<std::vector<AskedField>> asked = split_fields(text);
  if (!asked) return pass(asked.error());
  std::vector<TableColumn<Field>> columns;
  for (const AskedField& one : *asked) {
    if (text::equal_ignoring_case(one.name, "ALL")) {
      for (const Field& field : table) columns.push_back({&field, field.width});
      continue;
    }
    const Field* field = find_field(table, one.name);
    if (field == nullptr) {
      std::vector<std::string_view> known;
      for (const Field& other : table) known.push_back(other.name);
      return unknown_field(one.name, known, hint);
    }
    columns.push_back({field, one.width.value_or(field->width)});
  }
  return columns;
}

}  // namespace berth::command
