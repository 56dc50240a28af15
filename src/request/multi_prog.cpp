#include "request/multi_prog.h"

#include <fmt/format.h>

#include <vector>

#include "text/number.h"
#include "text/words.h"

namespace berth::request {
namespace {

constexpr std::uint32_t kMostPrograms = 1U << 20;

std::unexpected<Error> bad_line(const std::string& file, int line, std::string text) {
  Error error;
  error.code = Code::bad_value;
  if (!text.empty()) error.messages.push_back({Severity::error, std::move(text)});
  error.messages.push_back(
      {Severity::error, fmt::format("Line {} of configuration file {} invalid", line, file)});
  error.hint = "a line is RANKS PROGRAM ARGUMENTS, with RANKS like 0-3,5 or * for all others";
  return std::unexpected<Error>(std::move(error));
}

/// Marks the ranks of one list; nullopt when it is fine, else the first rank out of range.
struct Ranks {
  std::vector<bool> named;
  bool rest = false;  // a line "*" takes all that are not named
  std::optional<std::uint64_t> beyond;
  bool malformed = false;

  void add(std::string_view list) {
    for (std::string_view part : text::split(list, ',')) {
      if (part == "*") {
        rest = true;
        continue;
      }
      const std::size_t dash = part.find('-');
      const auto first = text::parse_number(part.substr(0, dash), 0xFFFFFFFFU);
      const auto last = dash == std::string_view::npos
                            ? first
                            : text::parse_number(part.substr(dash + 1), 0xFFFFFFFFU);
      if (!first || !last || *last < *first) {
        malformed = true;
        return;
      }
      if (*last >= named.size()) {
        beyond = *first >= named.size() ? *first : named.size();
        return;
      }
      for (std::uint64_t rank = *first; rank <= *last; ++rank) named[rank] = true;
    }
  }
};

}  // namespace

Result<void> check_multi_prog(const std::string& file, std::optional<std::string_view> content,
                              std::uint32_t ntasks) {
  if (!content) {
    return fail(Code::io, fmt::format("Could not open multi_prog config file {}", file),
                "the first word after --multi-prog's options is the file that says which rank runs "
                "which program");
  }
  if (ntasks > kMostPrograms) return {};  // beyond any step; refused elsewhere
  Ranks ranks;
  ranks.named.assign(ntasks, false);
  int number = 0;
  for (std::string_view raw : text::split(*content, '\n')) {
    ++number;
    const std::string_view line = text::trim(raw);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t blank = line.find_first_of(" \t");
    ranks.add(line.substr(0, blank));
    if (ranks.malformed || blank == std::string_view::npos) return bad_line(file, number, {});
    if (ranks.beyond) {
      return bad_line(file, number, fmt::format("Invalid task id, {} >= ntasks", *ranks.beyond));
    }
  }
  if (ranks.rest) return {};
  for (std::uint32_t rank = 0; rank < ntasks; ++rank) {
    if (ranks.named[rank]) continue;
    return fail(Code::bad_value,
                fmt::format("Configuration file {} invalid, no record for task id {}", file, rank),
                fmt::format("{} tasks run, so every rank from 0 to {} needs a line; a last line "
                            "\"* program\" takes all others",
                            ntasks, ntasks - 1));
  }
  return {};
}

}  // namespace berth::request
