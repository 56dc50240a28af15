#include "command/option_words.h"

#include <fmt/format.h>

namespace berth::command {
namespace {

struct Reader {
  std::string_view command;
  std::span<const OptionRow> table;
  std::span<const std::string> words;
  std::size_t at = 0;
  ReadWords out;

  [[nodiscard]] std::unexpected<Error> refuse(std::string text) const {
    Error error;
    error.code = Code::bad_value;
    error.messages.push_back({Severity::plain, std::move(text)});
    error.messages.push_back(
        {Severity::bare, fmt::format("Try \"{} --help\" for more information", command)});
    return std::unexpected(std::move(error));
  }

  [[nodiscard]] bool next_is_value() const {
    return at + 1 < words.size() && !words[at + 1].starts_with('-');
  }

  Result<const OptionRow*> find_long(std::string_view name) const {
    const OptionRow* found = nullptr;
    std::string candidates;
    bool ambiguous = false;
    for (const OptionRow& row : table) {
      if (row.name.empty() || !row.name.starts_with(name)) continue;
      if (row.name == name) return &row;
      candidates += fmt::format(" '--{}'", row.name);
      ambiguous = ambiguous || found != nullptr;
      found = &row;
    }
    if (ambiguous) {
      return refuse(fmt::format("option '--{}' is ambiguous; possibilities:{}", name, candidates));
    }
    if (found == nullptr) return refuse(fmt::format("unrecognized option '--{}'", name));
    return found;
  }

  Result<void> read_long(std::string_view word) {
    const std::size_t eq = word.find('=');
    const std::string_view name = word.substr(2, eq == word.npos ? word.npos : eq - 2);
    Result<const OptionRow*> row = find_long(name);
    if (!row) return pass(std::move(row.error()));
    GivenOption given{*row, std::nullopt};
    if (eq != word.npos) {
      if ((*row)->takes == Takes::nothing) {
        return refuse(fmt::format("option '--{}' doesn't allow an argument", (*row)->name));
      }
      given.value = std::string(word.substr(eq + 1));
    } else if ((*row)->takes == Takes::value) {
      if (at + 1 >= words.size()) {
        return refuse(fmt::format("option '--{}' requires an argument", (*row)->name));
      }
      given.value = words[++at];
    } else if ((*row)->takes == Takes::follows && next_is_value()) {
      given.value = words[++at];
    }
    out.options.push_back(std::move(given));
    return {};
  }

  Result<void> read_letters(std::string_view letters) {
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const OptionRow* row = nullptr;
      for (const OptionRow& candidate : table) {
        if (candidate.letter == letters[i]) row = &candidate;
      }
      if (row == nullptr) return refuse(fmt::format("invalid option -- '{}'", letters[i]));
      GivenOption given{row, std::nullopt};
      const std::string_view rest = letters.substr(i + 1);
      if (row->takes != Takes::nothing && !rest.empty()) {
        given.value = std::string(rest);
        i = letters.size();
      } else if (row->takes == Takes::value) {
        if (at + 1 >= words.size()) {
          return refuse(fmt::format("option requires an argument -- '{}'", row->letter));
        }
        given.value = words[++at];
      } else if (row->takes == Takes::follows && next_is_value()) {
        given.value = words[++at];
      }
      out.options.push_back(std::move(given));
    }
    return {};
  }
};

}  // namespace

Result<ReadWords> read_options(std::string_view command, std::span<const OptionRow> table,
                               std::span<const std::string> words) {
  Reader reader{command, table, words, 0, {}};
  for (; reader.at < words.size(); ++reader.at) {
    const std::string_view word = words[reader.at];
    if (word == "--") {
      for (++reader.at; reader.at < words.size(); ++reader.at) {
        reader.out.operands.push_back(words[reader.at]);
      }
      break;
    }
    Result<void> read;
    if (word.starts_with("--")) {
      read = reader.read_long(word);
    } else if (word.size() > 1 && word.front() == '-') {
      read = reader.read_letters(word.substr(1));
    } else {
      reader.out.operands.emplace_back(word);
    }
    if (!read) return pass(std::move(read.error()));
  }
  return std::move(reader.out);
}

}  // namespace berth::command
