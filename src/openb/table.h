// A CSV file whose columns are found by the names in its first line. Fields have no quotes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::openb {

class Table {
 public:
  /// Refused where one of the `needed` columns is missing.
  static Result<Table> read(std::string_view text, std::string name,
                            const std::vector<std::string_view>& needed);

  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  /// "" where the column or the field is not there.
  [[nodiscard]] std::string_view text(std::size_t row, std::string_view column) const;
  /// A whole number from 0 to `most`.
  [[nodiscard]] Result<std::uint64_t> number(std::size_t row, std::string_view column,
                                             std::uint64_t most) const;
  /// "file:line: text" as an error.
  [[nodiscard]] std::unexpected<Error> refuse(std::size_t row, std::string_view text) const;

 private:
  struct Row {
    std::size_t line = 0;
    std::vector<std::string> fields;
  };
  std::string name_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<Row> rows_;
};

}  // namespace berth::openb
