// Columns.
#include "explain/table.h"

#include <algorithm>

namespace berth::explain {

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string cut(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string(text);
  std::size_t seen = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && ++seen == width) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

void Table::column(std::string title, Align align) {
  titles_.push_back(std::move(title));
  aligns_.push_back(align);
}

void Table::row(std::vector<std::string> cells) {
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const std::string& title : titles_) widths.push_back(width_of(title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  }
  std::string out;
  const auto add = [&](const std::vector<std::string>& cells) {
    std::string line(indent);
    for (std::size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string blanks(widths[i] - width_of(cells[i]), ' ');
      line += aligns_[i] == Align::right ? blanks + cells[i] : cells[i] + blanks;
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + '\n';
  };
  add(titles_);
  for (const auto& row : rows_) add(row);
  return out;
}

}  // namespace berth::explain
