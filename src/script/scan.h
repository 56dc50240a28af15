// Finds where quotes, substitutions and words end in shell text. Nothing is expanded here. Every
// function takes the index of the opening character and returns the index after the closing one,
// or npos when it is missing or nesting is deeper than kMaxDepth.
#pragma once

#include <string_view>

namespace berth::script {

inline constexpr std::size_t kUnclosed = std::string_view::npos;

std::size_t skip_single_quotes(std::string_view s, std::size_t at);  // '…'
std::size_t skip_ansi_quotes(std::string_view s, std::size_t at);    // $'…', at the $
std::size_t skip_double_quotes(std::string_view s, std::size_t at, int depth = 0);  // "…"
std::size_t skip_backticks(std::string_view s, std::size_t at);                     // `…`
std::size_t skip_parentheses(std::string_view s, std::size_t at, int depth = 0);    // (…)
std::size_t skip_braces(std::string_view s, std::size_t at, int depth = 0);         // {…} of ${…}
/// At a '$': $name, ${…}, $(…), $((…)), $'…', $"…", or a lone $.
std::size_t skip_dollar(std::string_view s, std::size_t at, int depth = 0);

bool is_name_start(char c);
bool is_name_char(char c);
bool is_blank(char c);
bool is_digit(char c);
/// Length of the variable name at the start of s; 0 when there is none.
std::size_t name_length(std::string_view s);

}  // namespace berth::script
