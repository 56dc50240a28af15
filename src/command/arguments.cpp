// Options of `berth explain`: few enough to be read by hand.
#include "command/arguments.h"

#include <fmt/format.h>

#include <array>

#include "script/launcher.h"
#include "text/words.h"

namespace berth::command {
namespace {

std::unexpected<Error> wrong_explain(std::string text) {
  return fail(Code::option_syntax, std::move(text), "`berth explain --help` shows how it is used");
}

/// Takes --name VALUE or --name=VALUE at `at`; moves `at` to the value in the first form.
std::optional<std::string> value_of(std::span<const std::string> words, std::size_t& at,
                                    std::string_view name) {
  const std::string& word = words[at];
  if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=') {
    return word.substr(name.size() + 1);
  }
  if (word != name || at + 1 >= words.size()) return std::nullopt;
  return words[++at];
}

Result<ExplainArguments> take_command(ExplainArguments arguments,
                                      std::span<const std::string> rest) {
  if (rest.empty())
    return wrong_explain("after -- there must be a command: sbatch, srun or salloc");
  const std::string_view name = script::base_name(rest.front());
  arguments.is_script = false;
  if (name == "sbatch") {
    arguments.command = request::Command::sbatch;
  } else if (name == "srun") {
    arguments.command = request::Command::srun;
  } else if (name == "salloc") {
    arguments.command = request::Command::salloc;
  } else {
    return wrong_explain(
        fmt::format("{} is not a command berth explains: sbatch, srun or salloc", name));
  }
  arguments.words.assign(rest.begin() + 1, rest.end());
  return arguments;
}

std::unexpected<Error> unknown_option(const std::string& word) {
  const std::array<std::string, 7> known = {"--conf", "--emulate", "--json", "--busy",
                                            "--all",  "--verbose", "--help"};
  const std::string near = text::nearest(word.substr(0, word.find('=')), known);
  if (!near.empty())
    return wrong_explain(fmt::format("unknown option {} (do you mean {}?)", word, near));
  return wrong_explain(
      fmt::format("unknown option {}; options of sbatch go after --: berth explain -- sbatch "
                  "{} SCRIPT",
                  word, word));
}

}  // namespace

Result<ExplainArguments> parse_explain(std::span<const std::string> words) {
  ExplainArguments arguments;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") return take_command(std::move(arguments), words.subspan(at + 1));
    if (word == "--help" || word == "-h") {
      arguments.help = true;
      return arguments;
    }
    if (word == "--json") {
      arguments.json = true;
    } else if (word == "--all") {
      arguments.all = true;
    } else if (word == "--verbose") {
      arguments.verbose = true;
    } else if (auto conf = value_of(words, at, "--conf")) {
      arguments.conf = std::move(conf);
    } else if (auto emulate = value_of(words, at, "--emulate")) {
      arguments.emulate = std::move(emulate);
    } else if (auto busy = value_of(words, at, "--busy")) {
      arguments.busy.push_back(std::move(*busy));
    } else if (word == "--conf" || word == "--emulate" || word == "--busy") {
      return wrong_explain(fmt::format("{} needs a value", word));
    } else if (word.size() > 1 && word[0] == '-') {
      return unknown_option(word);
    } else {
      arguments.words.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
      return arguments;
    }
  }
  return wrong_explain("there is nothing to explain: name a script, or a command after --");
}

}  // namespace berth::command
