// Reads a batch script the way its author thinks of it: which launcher lines run, in what order,
// which in the background, and what is waited for. It never runs anything. It follows literal
// assignments, functions, for loops over known words and simple arithmetic; what it cannot know it
// says (Command::uncertain) instead of guessing.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::script {

enum class Launcher { none, srun, mpirun, torchrun, torch_distributed, deepspeed, accelerate, salloc,
                      sbatch };

/// One simple command that would run, after expansion.
struct Command {
  int line = 0;                        // where it stands in the script, from 1
  std::string text;                    // the source text of the command, trimmed
  std::vector<std::string> words;      // expanded words, without leading assignments
  std::map<std::string, std::string> assignments;  // VAR=x before the command
  Launcher launcher = Launcher::none;
  bool background = false;             // ended by &
  bool uncertain = false;              // inside if/case/while, or a word could not be expanded
  std::string why_uncertain;
};

/// What happens, in order.
struct Event {
  enum class Kind { run, wait_all } kind = Kind::run;
  std::size_t command = 0;  // index into Script::commands, for run
  int line = 0;
};

struct Script {
  std::vector<Command> commands;  // every simple command reached, in order of execution
  std::vector<Event> events;
  bool truncated = false;         // a limit was reached (loop or command count)
  std::vector<std::string> notes; // e.g. "line 12: while loop read once"
};

/// `variables` are those known at start (the batch environment). `arguments` are $1, $2, ….
/// Bounded: at most 10,000 commands and 1 MiB of expansion, whatever the script says.
Script read_script(std::string_view text, const std::map<std::string, std::string>& variables,
                   const std::vector<std::string>& arguments);

}  // namespace berth::script
