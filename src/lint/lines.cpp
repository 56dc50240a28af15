// Classifies script lines: a directive counts only at column 1 and only before the first command.
#include "lint/lines.h"

#include <algorithm>

#include "request/directives.h"
#include "text/words.h"

namespace berth::lint {
namespace {

constexpr std::string_view kMarker = "#SBATCH";
constexpr std::size_t kMaxLine = 8192;  // longer lines are no directives anyone wrote by hand

/// Notices an unquoted # that cuts a word. How words are split is request's business.
void find_cut(std::string_view text, Line& line) {
  std::string word;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '\\' && (next == ' ' || next == '\t' || next == '"' || next == '\'')) {
      word += text[++i];
    } else if (quote != '\0') {
      quote = c == quote ? '\0' : quote;
      word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      word += c;
    } else if (c == ' ' || c == '\t') {
      word.clear();
    } else if (c == '#') {
      if (word.empty()) return;
      line.cut_word = word;
      line.cut_off = text.substr(i);
      return;
    } else {
      word += c;
    }
  }
}

/// What kind of lookalike a comment line is, and where its options begin.
std::optional<LineKind> lookalike(std::string_view line, std::string_view& options) {
  const std::string_view bare = text::trim(line);
  if (!bare.starts_with('#')) return std::nullopt;
  std::size_t at = 0;
  while (at < bare.size() && bare[at] == '#') ++at;
  const std::size_t hashes = at;
  while (at < bare.size() && (bare[at] == ' ' || bare[at] == '\t')) ++at;
  const std::size_t blanks = at - hashes;
  const std::string_view word = bare.substr(at, kMarker.size() - 1);
  if (!text::equal_ignoring_case(word, kMarker.substr(1))) return std::nullopt;
  options = text::trim(bare.substr(at + word.size()));
  if (!options.starts_with('-')) return std::nullopt;
  if (hashes > 1) return LineKind::doubled;
  if (blanks > 0) return LineKind::spaced;
  if (word != kMarker.substr(1)) return LineKind::wrong_case;
  return LineKind::indented;
}

/// The delimiter of a here-document that begins on this line, or "".
std::string here_document(std::string_view line) {
  const std::size_t at = line.find("<<");
  if (at == std::string_view::npos || line.substr(at).starts_with("<<<")) return {};
  std::string_view rest = line.substr(at + 2);
  if (rest.starts_with('-')) rest.remove_prefix(1);
  rest = text::trim(rest);
  std::string word;
  for (const char c : rest) {
    if (c == '\'' || c == '"' || c == '\\') continue;
    if (c == ' ' || c == '\t' || c == ';' || c == '|' || c == '>' || c == ')' || c == '&') break;
    word += c;
  }
  return word;
}

class Reader {
 public:
  Lines read(std::string_view script) {
    const std::string_view whole = script;
    lines_.dos_breaks = script.find("\r\n") != std::string_view::npos;
    lines_.byte_order_mark = script.starts_with("\xEF\xBB\xBF");
    lines_.has_interpreter = script.starts_with("#!");
    int number = 0;
    while (!script.empty() && lines_.marked.size() < kMaxMarked) {
      const std::size_t end = script.find('\n');
      std::string_view line = script.substr(0, end);
      script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++number;
      if (line.size() <= kMaxLine) one(number, line);
    }
    take_words(whole);
    return std::move(lines_);
  }

 private:
  /// The words of the directives, as sbatch reads them; none when it refuses to.
  void take_words(std::string_view script) {
    std::vector<Message> warnings;
    auto directives = request::find_directives(script, "", warnings);
    if (!directives) return;
    for (Line& line : lines_.marked) {
      const auto at =
          std::ranges::lower_bound(*directives, line.number, {}, &request::Directive::line);
      if (at != directives->end() && at->line == line.number) line.words = at->words;
    }
  }

  void one(int number, std::string_view line) {
    if (!delimiter_.empty()) {
      if (text::trim(line) == delimiter_) delimiter_.clear();
      return;
    }
    const bool exact = line.starts_with(kMarker);
    if (!lines_.first_command) {
      if (exact) return mark(number, LineKind::directive, line.substr(kMarker.size()));
      header_line(number, line);
    } else {
      late_line(number, line, exact);
    }
    if (lines_.first_command && !text::trim(line).starts_with('#')) {
      delimiter_ = here_document(line);
    }
  }

  void header_line(int number, std::string_view line) {
    std::string_view options;
    if (const auto kind = lookalike(line, options)) return mark(number, *kind, options);
    const std::string_view bare = text::trim(line);
    if (bare.empty() || bare.starts_with('#')) return;
    lines_.first_command = number;
    lines_.first_command_text = bare;
  }

  void late_line(int number, std::string_view line, bool exact) {
    std::string_view options;
    const auto kind = lookalike(line, options);
    if (kind == LineKind::indented || (exact && options.starts_with('-'))) {
      mark(number, LineKind::late, options);
    }
  }

  void mark(int number, LineKind kind, std::string_view options) {
    Line line;
    line.number = number;
    line.kind = kind;
    line.options = text::trim(options);
    if (kind == LineKind::directive) find_cut(options, line);
    lines_.marked.push_back(std::move(line));
  }

  Lines lines_;
  std::string delimiter_;
};

}  // namespace

Lines read_lines(std::string_view script) {
  return Reader().read(script);
}

}  // namespace berth::lint
