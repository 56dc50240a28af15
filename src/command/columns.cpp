#include "command/columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/words.h"

namespace berth::command {
namespace {

constexpr std::size_t kMostWidth = 1 << 20;
constexpr std::size_t kDefaultLongWidth = 20;

std::optional<std::size_t> find_letter(char letter, const FieldNames& names) {
  for (std::size_t i = 0; i < names.letters.size(); ++i) {
    if (names.letters[i] != 0 && names.letters[i] == letter) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> find_name(std::string_view name, const FieldNames& names) {
  for (std::size_t i = 0; i < names.names.size(); ++i) {
    if (!names.names[i].empty() && text::equal_ignoring_case(names.names[i], name)) return i;
  }
  return std::nullopt;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "[.][digits]" at text[at]; moves on.
void read_width(std::string_view text, std::size_t& at, Column& column) {
  for (; at < text.size() && (text[at] == '.' || text[at] == '#' || text[at] == '-'); ++at) {
    if (text[at] == '.') column.right = true;
    if (text[at] == '#') column.widest = true;
  }
  for (; at < text.size() && is_digit(text[at]); ++at) {
    column.width =
        std::min(kMostWidth, column.width * 10 + static_cast<std::size_t>(text[at] - '0'));
  }
}

/// Every field that has a letter: small ones first.
void add_all(const FieldNames& names, std::string_view suffix, Format& format) {
  const auto add = [&](char first, char last, std::string_view separator) {
    for (char letter = first; letter <= last; ++letter) {
      if (const auto field = find_letter(letter, names)) {
        format.columns.push_back({.field = *field, .suffix = std::string(separator)});
      }
    }
  };
  add('a', 'z', names.all_small);
  add('A', 'Z', names.all_capital);
  if (!format.columns.empty()) format.columns.back().suffix += suffix;
}

bool splits_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
}

}  // namespace

Result<Format> parse_format(std::string_view text, const FieldNames& names) {
  Format format;
  std::string* plain = &format.prefix;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '%') {
      *plain += text[at++];
      continue;
    }
    if (text.substr(at, 2) == "%%") {
      *plain += '%';
      at += 2;
      continue;
    }
    if (text.substr(at, 4) == "%all") {
      at += 4;
      add_all(names, {}, format);
      plain = &format.columns.back().suffix;
      continue;
    }
    ++at;
    Column column;
    read_width(text, at, column);
    const auto field = at < text.size() ? find_letter(text[at], names) : std::nullopt;
    if (!field) {
      return fail(Code::bad_value, fmt::format("{}: {}", names.refusal, text.substr(at, 1)));
    }
    ++at;
    column.field = *field;
    format.columns.push_back(std::move(column));
    plain = &format.columns.back().suffix;
  }
  return format;
}

Result<Format> parse_long_format(std::string_view text, const FieldNames& names) {
  Format format;
  for (const std::string_view part : text::split(text, ',')) {
    if (part.empty()) continue;
    const std::size_t colon = part.find(':');
    const std::string_view name = text::trim(part.substr(0, colon));
    Column column;
    const auto field = find_name(name, names);
    if (!field) {
      return fail(Code::bad_value, fmt::format("{}: {}", names.refusal, name), [&] {
        const std::string close = text::nearest(name, std::span(names.names));
        return close.empty() ? std::string() : fmt::format("did you mean {}?", close);
      }());
    }
    column.field = *field;
    if (colon == part.npos) {
      column.width = kDefaultLongWidth;
    } else {
      std::size_t at = colon + 1;
      read_width(part, at, column);
      column.suffix = std::string(part.substr(at));
    }
    format.columns.push_back(std::move(column));
  }
  return format;
}

void fit(std::string& out, std::size_t start, std::size_t width, bool right) {
  if (width == 0) return;
  std::size_t length = out.size() - start;
  if (length > width) {
    // Half a character is worse than a column that is a little narrower.
    std::size_t end = start + width;
    while (end > start && splits_character(out, end)) --end;
    out.resize(end);
    length = end - start;
  }
  if (length < width) {
    if (right) {
      out.insert(start, width - length, ' ');
    } else {
      out.append(width - length, ' ');
    }
  }
}

std::vector<std::size_t> sorted_order(std::span<const SortKey> keys,
                                      const std::vector<std::vector<SortValue>>& values,
                                      std::size_t rows, bool reverse_ties) {
  std::vector<std::size_t> order(rows);
  for (std::size_t i = 0; i < rows; ++i) order[i] = i;
  for (std::size_t k = keys.size(); k-- > 0;) {
    if (keys[k].descending && reverse_ties) std::ranges::reverse(order);
    const auto less = [&](std::size_t a, std::size_t b) {
      const SortValue& x = values[k][keys[k].descending ? b : a];
      const SortValue& y = values[k][keys[k].descending ? a : b];
      return x.number != y.number ? x.number < y.number : x.text < y.text;
    };
    // Often all are equal, or the controller's order is the one asked for.
    if (!std::ranges::is_sorted(order, less)) std::ranges::stable_sort(order, less);
  }
  return order;
}

Result<std::vector<SortKey>> parse_sort(std::string_view text, const FieldNames& names) {
  std::vector<SortKey> keys;
  SortKey key;
  for (const char c : text) {
    if (c == ',' || c == ' ' || c == '+') continue;
    if (c == '-') {
      key.descending = true;
    } else if (c == '#') {
      key.configured = true;
    } else {
      const auto field = find_letter(c, names);
      if (!field) {
        return fail(Code::bad_value, fmt::format("Invalid sort specification: {}", text));
      }
      key.field = *field;
      keys.push_back(key);
      key = {};
    }
  }
  return keys;
}

}  // namespace berth::command
