#include "command/table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/printable.h"

namespace berth::command {
namespace {

constexpr int kMostCellWidth = 1 << 20;

}  // namespace

void append_fitted(std::string& out, std::string_view value, int width) {
  const auto size = static_cast<std::size_t>(std::abs(width));
  if (value.size() > size) {
    std::size_t end = size == 0 ? 0 : size - 1;
    while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xc0U) == 0x80U) --end;
    out += value.substr(0, end);
    if (size > 0) out += '+';
    return;
  }
  if (width > 0) out.append(size - value.size(), ' ');
  out += value;
  if (width < 0) out.append(size - value.size(), ' ');
}

void append_cell(const TableStyle& style, std::string_view raw, int width, bool last,
                 std::string& out) {
  const std::string value = printable(raw);
  switch (style.kind) {
    case TableStyle::Kind::columns:
      append_fitted(out, value, width);
      out += ' ';
      break;
    case TableStyle::Kind::parsable:
      out += value;
      out += style.delimiter;
      break;
    case TableStyle::Kind::parsable2:
      out += value;
      if (!last) out += style.delimiter;
      break;
  }
}

void append_dashes(int width, std::string& out) {
  out.append(static_cast<std::size_t>(std::abs(width)), '-');
  out += ' ';
}

Result<std::vector<AskedField>> split_fields(std::string_view text) {
  std::vector<AskedField> fields;
  for (const std::string_view part : text::split(text, ',')) {
    const std::string_view word = text::trim(part);
    if (word.empty()) continue;
    const std::size_t percent = word.find('%');
    AskedField field{word.substr(0, percent), std::nullopt};
    if (percent != word.npos) {
      const std::string_view digits = word.substr(percent + 1);
      int asked = 0;
      const auto [end, fault] =
          std::from_chars(digits.data(), digits.data() + digits.size(), asked);
      if (fault != std::errc() || asked == 0) {
        return fail(Code::bad_value, fmt::format("Invalid width in \"{}\"", word));
      }
      field.width = std::clamp(asked, -kMostCellWidth, kMostCellWidth);
    }
    fields.push_back(field);
  }
  if (fields.empty()) return fail(Code::bad_value, "No fields requested");
  return fields;
}

std::unexpected<Error> unknown_field(std::string_view name, std::span<const std::string_view> known,
                                     std::string_view hint) {
  const std::string close = text::nearest(name, known);
  return fail(Code::bad_value, fmt::format("Invalid field requested: \"{}\"", name),
              close.empty() ? std::string(hint) : fmt::format("did you mean {}?", close));
}

}  // namespace berth::command
