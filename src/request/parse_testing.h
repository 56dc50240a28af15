// For the tests of this folder: a command line written as one string, and what came of it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "request/parse.h"

namespace berth::request::testing {

/// Words apart by blanks; '…' groups.
inline std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  std::string word;
  bool quoted = false;
  bool some = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
      some = true;
    } else if (c == ' ' && !quoted) {
      if (some) out.push_back(word);
      word.clear();
      some = false;
    } else {
      word += c;
      some = true;
    }
  }
  if (some) out.push_back(word);
  return out;
}

/// The first word is the command. sbatch without --wrap gets an empty script unless one is given.
inline Result<Parsed> parse_line(const std::string& line, const Surroundings& around = {},
                                 std::string_view script = "#!/bin/sh\n") {
  std::vector<std::string> words = words_of(line);
  const std::string name = words.front();
  words.erase(words.begin());
  const Command command = name == "sbatch" ? Command::sbatch
                          : name == "srun" ? Command::srun
                                           : Command::salloc;
  return parse(command, words, script, around);
}

/// "exit code: line | line" as printed, or "ok".
inline std::string outcome(const std::string& line, const Surroundings& around = {},
                           std::string_view script = "#!/bin/sh\n") {
  const Result<Parsed> parsed = parse_line(line, around, script);
  if (parsed) return "ok";
  const std::string command = line.substr(0, line.find(' '));
  std::string out = std::to_string(parsed.error().exit_code) + ":";
  for (const Message& message : parsed.error().messages)
    out += " " + render(message, command) + " |";
  out.resize(out.size() - 2);
  return out;
}

}  // namespace berth::request::testing
