// Small helpers on words: nearest known word, splitting, case, paths.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::text {

std::vector<std::string_view> split(std::string_view s, char separator);
std::string_view trim(std::string_view s);
std::string to_lower(std::string_view s);
std::string to_upper(std::string_view s);
bool equal_ignoring_case(std::string_view a, std::string_view b);
/// The known word most like `word` (edit distance, at most about a third of its length away), or
/// "".
std::string nearest(std::string_view word, std::span<const std::string> known);
std::string nearest(std::string_view word, std::span<const std::string_view> known);
/// A path as seen from a directory; one that begins with '/', or "", as it is.
std::string absolute(std::string_view path, std::string_view directory);

}  // namespace berth::text
