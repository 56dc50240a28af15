// Lines and columns of foreign text files, bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace berth::simulate {

/// Line by line, without the end of line ("\n" or "\r\n").
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next(std::string_view& line);
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::uint32_t number_ = 0;
};

/// Columns with any number of blanks and tabs between them.
void split_blanks(std::string_view line, std::vector<std::string_view>& out);
/// Columns with one separator between them; `most` at most, the rest is left out.
void split_at(std::string_view line, char separator, std::size_t most,
              std::vector<std::string_view>& out);

/// "12", "-1", "12.5": the number, cut to ±10^15; nullopt for anything else.
std::optional<double> real_of(std::string_view text);
/// The same, rounded down to a whole number.
std::optional<std::int64_t> whole_of(std::string_view text);
/// "16G", "62.50G", "4000M", "512K", "16384" (MB): whole MB, rounded up.
std::optional<std::uint64_t> megabytes_of(std::string_view text);
/// "2024-01-31T12:00:00" or seconds since 1970; nullopt for "Unknown", "None" and the like.
std::optional<std::int64_t> moment_of(std::string_view text);
/// "[days-]hours:minutes:seconds", "minutes:seconds", with or without a fraction; or seconds.
std::optional<std::int64_t> elapsed_of(std::string_view text);

}  // namespace berth::simulate
