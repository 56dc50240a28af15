#include "command/submit_usage.h"

#include <fmt/format.h>

#include <cstdio>

#include "command/version.h"
#include "request/table.h"

namespace berth::command {
namespace {

using request::Argument;
using request::Command;

std::string_view operands(Command command) {
  switch (command) {
    case Command::sbatch:
      return "[OPTIONS…] [: [OPTIONS…]]… SCRIPT [ARGUMENTS…]";
    case Command::srun:
      return "[OPTIONS…] PROGRAM [ARGUMENTS…] [: [OPTIONS…] PROGRAM [ARGUMENTS…]]…";
    case Command::salloc:
      return "[OPTIONS…] [: [OPTIONS…]]… [COMMAND [ARGUMENTS…]]";
  }
  return "";
}

std::string_view purpose(Command command) {
  switch (command) {
    case Command::sbatch:
      return "Puts a batch script into the queue and returns at once. Lines #SBATCH in the script "
             "are\n"
             "options too; without SCRIPT it is read from standard input.";
    case Command::srun:
      return "Runs tasks of a program: in the job it is called in, else in a job of its own.";
    case Command::salloc:
      return "Waits for an allocation, runs a command (else a shell) that may call srun in it, and "
             "gives\n"
             "the allocation back when the command ends.";
  }
  return "";
}

std::string spelled(const request::OptionRow& row, Command command) {
  const bool letter = row.letter != 0 && (row.letter_in & request::bit_of(command)) != 0;
  std::string text = letter ? fmt::format("-{}, ", row.letter) : "    ";
  text += fmt::format("--{}", row.name);
  if (row.argument == Argument::required) text += "=VALUE";
  if (row.argument == Argument::optional) text += "[=VALUE]";
  return text;
}

std::string meaning(const request::OptionRow& row) {
  switch (row.status) {
    case request::Status::refused:
      return fmt::format("(not supported: {})", row.note);
    case request::Status::no_op:
    case request::Status::told:
      return fmt::format("(no effect: {})", row.note);
    case request::Status::honoured:
    case request::Status::recorded:
      break;
  }
  return std::string(row.note);
}

}  // namespace

std::string help_text(Command command) {
  std::string text = fmt::format("Usage: {} {}\n\n{}\n\nOptions:\n", request::command_name(command),
                                 operands(command), purpose(command));
  for (const request::OptionRow& row : request::option_rows()) {
    if ((row.commands & request::bit_of(command)) == 0) continue;
    const std::string name = spelled(row, command);
    if (name.size() > 28) {
      text += fmt::format("  {}\n{:32}{}\n", name, "", meaning(row));
    } else {
      text += fmt::format("  {:<30}{}\n", name, meaning(row));
    }
  }
  return text +
         fmt::format(
             "\nOptions may also be given by variables ({}_…); `berth explain -- {} …` says what a "
             "request will get.\n",
             command == Command::sbatch   ? "SBATCH"
             : command == Command::salloc ? "SALLOC"
                                          : "SLURM",
             request::command_name(command));
}

std::string usage_text(Command command) {
  std::string text = fmt::format("Usage: {}", request::command_name(command));
  std::size_t column = text.size();
  const std::string indent(text.size(), ' ');
  const auto put = [&](const std::string& word) {
    if (column + word.size() + 1 > 96) {
      text += "\n" + indent;
      column = indent.size();
    }
    text += " " + word;
    column += word.size() + 1;
  };
  for (const request::OptionRow& row : request::option_rows()) {
    if ((row.commands & request::bit_of(command)) == 0) continue;
    if (row.status == request::Status::refused || row.status == request::Status::no_op) continue;
    std::string word = fmt::format("[--{}", row.name);
    if (row.argument == Argument::required) word += "=VALUE";
    if (row.argument == Argument::optional) word += "[=VALUE]";
    put(word + "]");
  }
  put(command == Command::sbatch ? "SCRIPT [ARGUMENTS…]"
      : command == Command::srun ? "PROGRAM [ARGUMENTS…]"
                                 : "[COMMAND [ARGUMENTS…]]");
  return text + "\n";
}

bool print_answer(Command command, bool help, bool usage, bool version) {
  if (version) {
    fmt::print("{}\n", kSlurmVersion);
  } else if (usage) {
    fmt::print("{}", usage_text(command));
  } else if (help) {
    fmt::print("{}", help_text(command));
  }
  return help || usage || version;
}

}  // namespace berth::command
