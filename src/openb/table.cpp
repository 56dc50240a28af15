#include "openb/table.h"

#include <fmt/format.h>

#include <charconv>

namespace berth::openb {
namespace {

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    while (!field.empty() && (field.front() == ' ' || field.front() == '\t'))
      field.remove_prefix(1);
    while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.remove_suffix(1);
    out.emplace_back(field);
    if (comma == std::string_view::npos) return out;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<Table> Table::read(std::string_view text, std::string name,
                          const std::vector<std::string_view>& needed) {
  Table table;
  table.name_ = std::move(name);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  bool header_seen = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (!header_seen) {
      header_seen = true;
      const std::vector<std::string> names = fields_of(line);
      for (std::size_t i = 0; i < names.size(); ++i) table.columns_.emplace(names[i], i);
      continue;
    }
    table.rows_.push_back({number, fields_of(line)});
  }
  for (std::string_view column : needed) {
    if (table.columns_.contains(column)) continue;
    return fail(Code::bad_value,
                fmt::format("{}: no column \"{}\" in its first line", table.name_, column));
  }
  return table;
}

std::string_view Table::text(std::size_t row, std::string_view column) const {
  const auto at = columns_.find(column);
  if (at == columns_.end() || at->second >= rows_[row].fields.size()) return {};
  return rows_[row].fields[at->second];
}

Result<std::uint64_t> Table::number(std::size_t row, std::string_view column,
                                    std::uint64_t most) const {
  const std::string_view field = text(row, column);
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (fault != std::errc() || end != field.data() + field.size() || field.empty()) {
    return refuse(row, fmt::format("{}: \"{}\" is not a whole number", column, field));
  }
  if (value > most) return refuse(row, fmt::format("{}: {} is more than {}", column, value, most));
  return value;
}

std::unexpected<Error> Table::refuse(std::size_t row, std::string_view text) const {
  return fail(Code::bad_value, fmt::format("{}:{}: {}", name_, rows_[row].line, text));
}

}  // namespace berth::openb
