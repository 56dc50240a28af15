#include "command/launch_multi_prog.h"

#include <fmt/format.h>

#include <utility>

#include "text/number.h"
#include "text/words.h"

namespace berth::command {
namespace {

struct Line {
  std::vector<std::uint32_t> ranks;  // in written order
  bool rest = false;                 // "*"
  std::vector<std::string> words;
};

/// Words with '…' and backslash as a shell reads them; nothing else is special, not even "…".
std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t')) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        words.back() += c;
      }
    } else if (c == '\'') {
      quote = c;
    } else {
      words.back() += c;
    }
  }
  return words;
}

void add_ranks(Line& line, std::string_view list, std::uint32_t ntasks) {
  for (const std::string_view part : text::split(list, ',')) {
    if (part == "*") {
      line.rest = true;
      continue;
    }
    const std::size_t dash = part.find('-');
    const auto first = text::parse_number(part.substr(0, dash), UINT32_MAX);
    const auto last = dash == std::string_view::npos
                          ? first
                          : text::parse_number(part.substr(dash + 1), UINT32_MAX);
    if (!first || !last) continue;
    for (std::uint64_t rank = *first; rank <= *last && rank < ntasks; ++rank) {
      line.ranks.push_back(static_cast<std::uint32_t>(rank));
    }
  }
}

std::vector<std::string> with_numbers(const std::vector<std::string>& words, std::uint32_t rank,
                                      std::size_t offset) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    std::string text;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (word[i] == '%' && i + 1 < word.size() && (word[i + 1] == 't' || word[i + 1] == 'o')) {
        text += word[++i] == 't' ? std::to_string(rank) : std::to_string(offset);
      } else {
        text += word[i];
      }
    }
    out.push_back(std::move(text));
  }
  return out;
}

bool has_double_quote(std::string_view line) {
  bool quoted = false;
  for (const char c : line) {
    if (c == '\'') quoted = !quoted;
    if (c == '"' && !quoted) return true;
  }
  return false;
}

}  // namespace

std::string multi_prog_advice(std::string_view content) {
  std::size_t number = 0;
  for (const std::string_view line : text::split(content, '\n')) {
    ++number;
    if (line.starts_with('#') || !has_double_quote(line)) continue;
    return fmt::format(
        "line {} of the --multi-prog file has double quotes, which do not keep words together "
        "there; "
        "single quotes do",
        number);
  }
  return {};
}

std::vector<std::vector<std::string>> multi_prog_commands(std::string_view content,
                                                          std::uint32_t ntasks) {
  std::vector<Line> lines;
  std::string joined;
  for (std::string_view raw : text::split(content, '\n')) {
    // A backslash at the end joins the next line.
    if (raw.ends_with('\\')) {
      joined += raw.substr(0, raw.size() - 1);
      continue;
    }
    joined += raw;
    const std::string whole = std::exchange(joined, {});
    const std::string_view text = text::trim(whole);
    const std::size_t blank = text.find_first_of(" \t");
    if (text.empty() || text.front() == '#' || blank == std::string_view::npos) continue;
    Line line;
    add_ranks(line, text.substr(0, blank), ntasks);
    line.words = split_words(text.substr(blank));
    lines.push_back(std::move(line));
  }
  std::vector<std::vector<std::string>> commands(ntasks);
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.ranks.size(); ++i) {
      if (commands[line.ranks[i]].empty()) {
        commands[line.ranks[i]] = with_numbers(line.words, line.ranks[i], i);
      }
    }
  }
  for (const Line& line : lines) {
    if (!line.rest) continue;
    for (std::uint32_t rank = 0; rank < ntasks; ++rank) {
      if (commands[rank].empty()) commands[rank] = with_numbers(line.words, rank, rank);
    }
  }
  return commands;
}

}  // namespace berth::command
