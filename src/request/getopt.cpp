// Own getopt_long over words; the texts are those of the C library, which users and scripts know.
#include "request/getopt.h"

#include <algorithm>

#include <fmt/format.h>

#include "request/table.h"
#include "text/words.h"

namespace berth::request {
namespace {

std::unexpected<Error> usage_error(Command command, std::string text, std::string hint) {
  Error error;
  error.code = Code::option_syntax;
  error.messages = {{Severity::plain, std::move(text)},
                    {Severity::bare,
                     fmt::format("Try \"{} --help\" for more information", command_name(command))}};
  error.hint = std::move(hint);
  error.exit_code = 255;
  return std::unexpected(std::move(error));
}

struct LongMatch {
  std::vector<const OptionRow*> rows;  // distinct options that fit
  std::vector<std::string> names;      // every name that fits, sorted
};

/// All long names of the command that begin with `written`; only the exact one when there is one.
/// berth's own are not to make an abbreviation ambiguous that Slurm understands: they are written
/// in full.
constexpr Opt kOwn[] = {Opt::explain, Opt::gpu_idle_timeout, Opt::gpu_mem, Opt::gpu_mem_min,
                        Opt::launcher};

LongMatch match_long(Command command, std::string_view written) {
  LongMatch match;
  bool exact = false;
  const auto consider = [&](Opt opt, std::string_view name, Commands commands) {
    if (exact || (commands & bit_of(command)) == 0 || !name.starts_with(written)) return;
    const OptionRow* row = &row_of(opt);
    if (name.size() == written.size()) {
      exact = true;
      match = {{row}, {std::string(name)}};
      return;
    }
    if (std::ranges::find(kOwn, opt) != std::end(kOwn)) return;
    match.names.emplace_back(name);
    if (std::ranges::find(match.rows, row) == match.rows.end()) match.rows.push_back(row);
  };
  for (const OptionRow& row : option_rows()) consider(row.opt, row.name, row.commands);
  for (const OptionAlias& alias : option_aliases()) {
    consider(alias.opt, alias.name, alias.commands);
  }
  std::ranges::sort(match.names);
  return match;
}

const OptionRow* match_letter(Command command, char letter) {
  for (const OptionRow& row : option_rows()) {
    if (row.letter == letter && (row.letter_in & bit_of(command)) != 0) return &row;
  }
  return nullptr;
}

std::string which_command_knows(Opt opt) {
  std::vector<std::string_view> known;
  for (const Command command : {Command::sbatch, Command::salloc, Command::srun}) {
    if ((row_of(opt).commands & bit_of(command)) != 0) known.push_back(command_name(command));
  }
  return fmt::format("{}", fmt::join(known, " and "));
}

/// Options that Slurm itself does not have; the container plugin of many GPU sites adds them.
constexpr std::string_view kPyxisOptions[] = {
    "container-image",          "container-mounts",
    "container-workdir",        "container-name",
    "container-save",           "container-mount-home",
    "container-remap-root",     "container-entrypoint",
    "container-entrypoint-log", "container-writable",
    "container-readonly",       "container-env",
    "no-container-mount-home",  "no-container-remap-root",
    "no-container-entrypoint",  "no-container-entrypoint-log"};

/// A plugin or another command may know the name, or it may be a slip of the keyboard.
std::string hint_for_unknown(Command command, std::string_view written) {
  if (std::ranges::find(kPyxisOptions, written) != std::end(kPyxisOptions)) {
    return fmt::format("--{} is an option of a site plugin (pyxis) that berth does not know",
                       written);
  }
  for (const OptionRow& row : option_rows()) {
    if (row.name == written) {
      return fmt::format("--{} is an option of {}, not of {}", row.name,
                         which_command_knows(row.opt), command_name(command));
    }
  }
  const std::string near = text::nearest(written, long_names(command));
  if (!near.empty()) return fmt::format("did you mean --{}?", near);
  return fmt::format("{} has no such option", command_name(command));
}

class Scanner {
 public:
  Scanner(Command command, std::span<const std::string> words, std::size_t from)
      : command_(command), words_(words), at_(from) {}

  Result<Scanned> run() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_];
      if (word == "--") {
        ++at_;
        break;
      }
      if (word.size() < 2 || word[0] != '-') break;
      began_ = at_;
      const Result<void> read = word[1] == '-' ? read_long(word) : read_letters(word);
      if (!read) return pass(read.error());
    }
    out_.rest = at_;
    return std::move(out_);
  }

  [[nodiscard]] std::size_t began() const { return began_; }

 private:
  Result<void> read_long(const std::string& word) {
    const std::size_t equals = word.find('=');
    const bool attached = equals != std::string::npos;
    const std::string_view whole = word;
    const std::string_view name = whole.substr(2, attached ? equals - 2 : std::string::npos);
    const LongMatch match = match_long(command_, name);
    if (match.rows.empty()) {
      return usage_error(command_, fmt::format("unrecognized option '{}'", word),
                         hint_for_unknown(command_, name));
    }
    if (match.rows.size() > 1) return ambiguous(word, match);
    const OptionRow& row = *match.rows.front();
    if (attached && row.argument == Argument::none) {
      return usage_error(command_, fmt::format("option '--{}' doesn't allow an argument", row.name),
                         fmt::format("--{} stands alone: {}", row.name, row.note));
    }
    Occurrence found{row.opt, attached ? word.substr(equals + 1) : "", began_};
    ++at_;
    if (!attached && row.argument == Argument::required) {
      if (at_ == words_.size()) {
        return usage_error(command_,
                           fmt::format("option '--{}' requires an argument", match.names.front()),
                           fmt::format("--{}=…: {}", row.name, row.note));
      }
      found.text = words_[at_++];
    }
    out_.options.push_back(std::move(found));
    return {};
  }

  Result<void> ambiguous(const std::string& word, const LongMatch& match) const {
    std::string text = fmt::format("option '{}' is ambiguous; possibilities:", word);
    for (const std::string& name : match.names) text += fmt::format(" '--{}'", name);
    return usage_error(command_, std::move(text), "write more of the option's name");
  }

  Result<void> read_letters(const std::string& word) {
    ++at_;
    for (std::size_t i = 1; i < word.size(); ++i) {
      const OptionRow* row = match_letter(command_, word[i]);
      if (row == nullptr) {
        return usage_error(command_, fmt::format("invalid option -- '{}'", word[i]),
                           hint_for_unknown(command_, std::string_view(word).substr(1)));
      }
      Occurrence found{row->opt, "", began_};
      if (row->argument == Argument::none) {
        out_.options.push_back(std::move(found));
        continue;
      }
      found.text = word.substr(i + 1);
      if (found.text.empty() && row->argument == Argument::required) {
        if (at_ == words_.size()) {
          return usage_error(command_, fmt::format("option requires an argument -- '{}'", word[i]),
                             fmt::format("-{} …: {}", word[i], row->note));
        }
        found.text = words_[at_++];
      }
      out_.options.push_back(std::move(found));
      break;
    }
    return {};
  }

  Command command_;
  std::span<const std::string> words_;
  std::size_t at_;         // next word to read
  std::size_t began_ = 0;  // word the current option began in
  Scanned out_;
};

}  // namespace

Result<Scanned> scan_words(Command command, std::span<const std::string> words, std::size_t from,
                           std::size_t* failed_at) {
  Scanner scanner(command, words, from);
  Result<Scanned> scanned = scanner.run();
  if (!scanned && failed_at != nullptr) *failed_at = scanner.began();
  return scanned;
}

}  // namespace berth::request
