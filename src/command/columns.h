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

template <class Row>
void append_row(std::span<const Field<Row>> table, const Format& format, const Row& row,
                const Shown& shown, std::string& out) {
  out += format.prefix;
  for (const Column& column : format.columns) {
    const std::size_t start = out.size();
    table[column.field].show(row, shown, out);
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
      table[column.field].show(row, shown, text);
      column.width = std::max(column.width, text.size());
    }
  }
}

/// Sorts by the keys, the first the most important one. Rows that are equal keep their order;
/// with `reverse_ties` they stand in reverse order after a descending key, as squeue shows them.
/// `configured` is the value "#" keys sort by.
template <class Row>
void sort_rows(std::span<const Field<Row>> table, std::span<const SortKey> keys, const Shown& shown,
               std::vector<Row>& rows, bool reverse_ties,
               std::int64_t (*configured)(const Row&) = nullptr) {
  struct Keyed {
    std::int64_t number = 0;
    std::string text;
    std::size_t row = 0;
  };
  std::vector<std::size_t> order(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) order[i] = i;
  for (std::size_t k = keys.size(); k-- > 0;) {
    const SortKey& key = keys[k];
    const Field<Row>& field = table[key.field];
    std::vector<Keyed> keyed(rows.size());
    if (key.descending && reverse_ties) std::ranges::reverse(order);
    for (std::size_t i = 0; i < order.size(); ++i) {
      keyed[i].row = order[i];
      const Row& row = rows[order[i]];
      if (key.configured && configured != nullptr) {
        keyed[i].number = configured(row);
      } else if (field.number != nullptr) {
        keyed[i].number = field.number(row);
      } else {
        field.show(row, shown, keyed[i].text);
      }
    }
    std::ranges::stable_sort(keyed, [&](const Keyed& a, const Keyed& b) {
      const auto less = [](const Keyed& x, const Keyed& y) {
        return x.number != y.number ? x.number < y.number : x.text < y.text;
      };
      return key.descending ? less(b, a) : less(a, b);
    });
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = keyed[i].row;
  }
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const std::size_t i : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

}  // namespace berth::command
