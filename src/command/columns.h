// Columns of squeue and sinfo: the formats of -o ("%.18i %j|") and -O ("JobID:.18,Name:|"), the
// table of fields they name, cells fitted to a width, and sorting by -S.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "base/result.h"
#include "command/show_text.h"

namespace berth::command {

/// One field a format can name. `show` appends the value; `number` is what it sorts by (unset: by
/// the text shown).
template <class Row>
struct Field {
  char letter = 0;        // of -o and -S; 0 = none
  std::string_view name;  // of -O; "" = none
  std::string_view header;
  void (*show)(const Row& row, const Shown& shown, std::string& out) = nullptr;
  std::int64_t (*number)(const Row& row) = nullptr;
};

/// A column as the format asks for it.
struct Column {
  std::size_t field = 0;
  std::size_t width = 0;  // 0 = as long as the value
  bool widest = false;    // "#": width becomes that of the longest value
  bool right = false;
  std::string suffix;
};
struct Format {
  std::string prefix;
  std::vector<Column> columns;
};

/// What a format's letters and names mean: filled from a field table.
struct FieldNames {
  std::vector<char> letters;
  std::vector<std::string_view> names;
  /// "%all": appended to small and to capital letters.
  std::string_view all_small = "|";
  std::string_view all_capital = "|";
  /// Begins the refusal: "Invalid job format specification".
  std::string_view refusal;
};
template <class Row>
FieldNames names_of(std::span<const Field<Row>> table, std::string_view refusal) {
  FieldNames out;
  for (const Field<Row>& field : table) {
    out.letters.push_back(field.letter);
    out.names.push_back(field.name);
  }
  out.refusal = refusal;
  return out;
}

/// -o: %[[.]size]type[text].
Result<Format> parse_format(std::string_view text, const FieldNames& names);
/// -O: type[:[.][size][suffix]],…; 20 wide where nothing follows the type.
Result<Format> parse_long_format(std::string_view text, const FieldNames& names);

/// Makes what was appended to `out` since `start` exactly `width` bytes wide (0: leaves it).
void fit(std::string& out, std::size_t start, std::size_t width, bool right);

/// One key of -S: [+-]letter, in sinfo also "#P" for the order of slurm.conf.
struct SortKey {
  std::size_t field = 0;
  bool descending = false;
  bool configured = false;
};
Result<std::vector<SortKey>> parse_sort(std::string_view text, const FieldNames& names);

template <class Row>
void append_header(std::span<const Field<Row>> table, const Format& format, std::string& out) {
  out += format.prefix;
  for (const Column& column : format.columns) {
    const std::size_t start = out.size();
    out += table[column.field].header;
    fit(out, start, column.width, column.right);
    out += column.suffix;
  }
  out += '\n';
}

/// The value of a field, which somebody else may have written.
template <class Row>
void append_value(const Field<Row>& field, const Row& row, const Shown& shown, std::string& out) {
  const std::size_t start = out.size();
  field.show(row, shown, out);
  make_printable(out, start);
}

template <class Row>
void append_row(std::span<const Field<Row>> table, const Format& format, const Row& row,
                const Shown& shown, std::string& out) {
  out += format.prefix;
  for (const Column& column : format.columns) {
    const std::size_t start = out.size();
    append_value(table[column.field], row, shown, out);
    fit(out, start, column.width, column.right);
    out += column.suffix;
  }
  out += '\n';
}

/// Gives the "#" columns the width of their longest value or header, at least `least`.
template <class Row>
void widen(std::span<const Field<Row>> table, Format& format, std::span<const Row> rows,
           const Shown& shown, std::size_t least) {
  std::string text;
  for (Column& column : format.columns) {
    if (!column.widest) continue;
    column.width = std::max(least, table[column.field].header.size());
    for (const Row& row : rows) {
      text.clear();
      append_value(table[column.field], row, shown, text);
      column.width = std::max(column.width, text.size());
    }
  }
}

/// What a row is sorted by: a number, or a text.
struct SortValue {
  std::int64_t number = 0;
  std::string text;
};
template <class Row>
SortValue sort_value(std::span<const Field<Row>> table, const SortKey& key, const Row& row,
                     const Shown& shown, std::int64_t (*configured)(const Row&) = nullptr) {
  const Field<Row>& field = table[key.field];
  SortValue value;
  if (key.configured && configured != nullptr) {
    value.number = configured(row);
  } else if (field.number != nullptr) {
    value.number = field.number(row);
  } else {
    field.show(row, shown, value.text);
  }
  return value;
}
/// The order of rows by the keys, the first the most important one; values[k][i] is what row i is
/// sorted by for key k. Rows that are equal keep their order; with `reverse_ties` they stand in
/// reverse order after a descending key, as squeue shows them.
std::vector<std::size_t> sorted_order(std::span<const SortKey> keys,
                                      const std::vector<std::vector<SortValue>>& values,
                                      std::size_t rows, bool reverse_ties);

/// Sorts rows so. `configured` is the value "#" keys sort by.
template <class Row>
void sort_rows(std::span<const Field<Row>> table, std::span<const SortKey> keys, const Shown& shown,
               std::vector<Row>& rows, bool reverse_ties,
               std::int64_t (*configured)(const Row&) = nullptr) {
  std::vector<std::vector<SortValue>> values(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k) {
    for (const Row& row : rows) {
      values[k].push_back(sort_value(table, keys[k], row, shown, configured));
    }
  }
  const std::vector<std::size_t> order = sorted_order(keys, values, rows.size(), reverse_ties);
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const std::size_t i : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

}  // namespace berth::command
