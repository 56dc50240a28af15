// Scanning #SBATCH lines: quotes, escapes, comments, hetjob.
#include "request/directives.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/words.h"

namespace berth::request {
namespace {

constexpr std::string_view kMagic = "#SBATCH";
constexpr std::string_view kOldMagic = "#SLURM";

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

std::unexpected<Error> bad_script(std::vector<std::string> lines, std::string hint) {
  Error error;
  error.code = Code::bad_script;
  for (std::string& line : lines) error.messages.push_back({Severity::error, std::move(line)});
  error.hint = std::move(hint);
  return std::unexpected(std::move(error));
}

/// The words of one directive, after the magic. The quote that was left open is given in `open`.
std::vector<std::string> directive_words(std::string_view rest, char& open) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  open = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    const char next = i + 1 < rest.size() ? rest[i + 1] : '\0';
    if (c == '\\' && (is_blank(next) || next == '"' || next == '\'')) {
      word += next;
      in_word = true;
      ++i;
    } else if (open != 0) {
      if (c == open) {
        open = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      open = c;
      in_word = true;
    } else if (c == '#') {
      break;
    } else if (is_blank(c)) {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

/// Calls line(number, text) for each line up to the first that is no comment.
template <class Fn>
void each_comment_line(std::string_view script, Fn&& line) {
  int number = 0;
  while (!script.empty()) {
    ++number;
    const std::size_t end = std::min(script.find('\n'), script.size());
    const std::string_view text = script.substr(0, end);
    script.remove_prefix(std::min(end + 1, script.size()));
    const auto* first = std::ranges::find_if_not(text, is_blank);
    if (first != text.end() && *first != '#') return;
    if (!line(number, text)) return;
  }
}

bool is_separator(const std::string& word) {
  return word == "hetjob" || word == "packjob";
}

Result<std::vector<DirectiveOption>> component_options(std::span<const std::string> words,
                                                       std::span<const int> lines) {
  std::size_t failed_at = 0;
  Result<Scanned> scanned = scan_words(Command::sbatch, words, 0, &failed_at);
  if (!scanned) {
    Error error = std::move(scanned.error());
    error.hint = fmt::format("line {} of the script: {}", lines[failed_at], error.hint);
    return pass(std::move(error));
  }
  if (scanned->rest < words.size()) {
    const std::string& word = words[scanned->rest];
    return bad_script(
        {"Invalid directive found in batch script: " + word},
        fmt::format("line {} of the script: \"{}\" is no option; quote values that have blanks in "
                    "them, and begin remarks with #",
                    lines[scanned->rest], word));
  }
  std::vector<DirectiveOption> out;
  for (Occurrence& option : scanned->options) {
    const int line = lines[option.word];
    out.push_back({std::move(option), line});
  }
  return out;
}

}  // namespace

Result<void> check_script(std::string_view script, std::size_t most) {
  if (script.empty()) {
    return bad_script({"Batch script is empty!"}, "give a script, or a command with --wrap");
  }
  if (script.size() > most) {
    return bad_script({"Batch script is too big"},
                      fmt::format("it has {} bytes; at most {} are taken: keep data in files of "
                                  "their own",
                                  script.size(), most));
  }
  if (std::ranges::all_of(script, [](char c) { return is_blank(c) || c == '\n'; })) {
    return bad_script({"Batch script contains only whitespace!"},
                      "give a script, or a command with --wrap");
  }
  if (!script.starts_with("#!")) {
    return bad_script({"This does not look like a batch script.  The first",
                       "line must start with #! followed by the path to an interpreter.",
                       "For instance: #!/bin/sh"},
                      "put #!/bin/bash on the first line, or use --wrap for a single command");
  }
  if (script.find('\0') != std::string_view::npos) {
    return bad_script({"Batch script contains a NUL character"},
                      "this looks like a binary; a script is text (use --wrap to run a program)");
  }
  if (script.find("\r\n") != std::string_view::npos) {
    return bad_script({"Batch script contains DOS line breaks (\\r\\n)",
                       "instead of expected UNIX line breaks (\\n)."},
                      "convert it: sed -i 's/\\r$//' SCRIPT");
  }
  return {};
}

Result<std::vector<Directive>> find_directives(std::string_view script, std::string_view file,
                                               std::vector<Message>& warnings) {
  std::vector<Directive> out;
  std::optional<Error> error;
  each_comment_line(script, [&](int number, std::string_view line) {
    std::string_view rest;
    if (line.starts_with(kMagic)) {
      rest = line.substr(kMagic.size());
    } else if (line.starts_with(kOldMagic)) {
      rest = line.substr(kOldMagic.size());
      if (warnings.size() < kMaxWarnings) {
        warnings.push_back(
            {Severity::error, fmt::format("line {}: write #SBATCH instead of #SLURM", number)});
      }
    } else {
      return true;
    }
    char open = 0;
    Directive directive{number, directive_words(rest, open)};
    if (open != 0) {
      error =
          Error{Code::bad_script,
                {{Severity::fatal, fmt::format("{}: line {}: Unmatched `{}` in [{}]", file, number,
                                               open, text::trim(rest))}},
                fmt::format("line {} of the script: close the quote, or write \\{}", number, open),
                1};
      return false;
    }
    out.push_back(std::move(directive));
    return true;
  });
  if (error) return pass(std::move(*error));
  return out;
}

Result<ScriptOptions> script_options(std::string_view script, std::string_view file,
                                     bool ignore_pbs) {
  ScriptOptions out;
  Result<std::vector<Directive>> directives = find_directives(script, file, out.warnings);
  if (!directives) return pass(std::move(directives.error()));

  // All lines of a component are one list of words, as if written on one command line.
  std::vector<std::string> words;
  std::vector<int> lines;
  const auto finish = [&]() -> Result<void> {
    Result<std::vector<DirectiveOption>> options = component_options(words, lines);
    if (!options) return pass(std::move(options.error()));
    out.components.push_back(std::move(*options));
    words.clear();
    lines.clear();
    return {};
  };
  for (Directive& directive : *directives) {
    if (directive.words.size() == 1 && is_separator(directive.words.front())) {
      if (Result<void> done = finish(); !done) return pass(std::move(done.error()));
      continue;
    }
    for (std::string& word : directive.words) {
      words.push_back(std::move(word));
      lines.push_back(directive.line);
    }
  }
  if (Result<void> done = finish(); !done) return pass(std::move(done.error()));
  if (!ignore_pbs) {
    std::ranges::move(translate_foreign(script, out.warnings),
                      std::back_inserter(out.components.front()));
  }
  return out;
}

}  // namespace berth::request
