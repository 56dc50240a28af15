// Text in aligned columns. Widths are counted in characters, not bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::explain {

enum class Align { left, right };

class Table {
 public:
  void column(std::string title, Align align = Align::left);
  void row(std::vector<std::string> cells);
  /// Every line begins with `indent`; columns are two blanks apart; no blanks at the ends.
  [[nodiscard]] std::string text(std::string_view indent) const;

 private:
  std::vector<std::string> titles_;
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Characters of UTF-8 text.
std::size_t width_of(std::string_view text);
/// At most `width` characters; a cut text ends in "…".
std::string cut(std::string_view text, std::size_t width);

}  // namespace berth::explain
