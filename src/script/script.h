// Reads a batch script the way its author thinks of it: which launcher lines run, in what order,
// which in the background, and what is waited for. It never runs anything. It follows literal
// assignments, functions, for loops over known words and simple arithmetic; what it cannot know it
// says (Command::uncertain) instead of guessing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "script/launcher.h"

namespace berth::script {

/// Exported variables that a script changed; nullopt = unset.
using Changes = std::map<std::string, std::optional<std::string>>;

/// One simple command that would run, after expansion.
struct Command {
  int line = 0;                    // where it stands in the script, from 1
  int called_from = 0;             // line of the outermost function call it runs in; 0 = none
  std::string text;                // the source text of the command, trimmed
  std::vector<std::string> words;  // expanded words, without leading assignments
  std::map<std::string, std::string> assignments;  // VAR=x before the command
  Launcher launcher = Launcher::none;
  std::size_t launcher_at = 0;   // index in words of the launcher (after `time`, `env X=y`, …)
  std::size_t arguments_at = 0;  // index in words of the launcher's first argument
  bool background = false;       // ended by &
  bool uncertain = false;        // inside if/case/while, or a word could not be expanded
  std::string why_uncertain;
  bool conditional = false;               // inside if/case/while: it may not run at all
  std::vector<std::size_t> unsure_words;  // words that could not be expanded: kept as written
  /// Commands of one chain run one after another. 0 is the script itself; every `… &` and every
  /// early part of a pipeline is a chain of its own, which runs beside the one that started it.
  std::size_t chain = 0;
  /// What the script had changed in its exported variables when this command ran. Never null for
  /// launchers; null for others.
  std::shared_ptr<const Changes> environment;
};

/// What happens, in order.
struct Event {
  enum class Kind {
    run,       // `command` runs to its end before the chain goes on
    start,     // the chains in `chains` begin beside this one
    wait_all,  // for all chains this one started
    wait_for,  // for the chains in `chains`; empty: for any one of them (wait -n)
  } kind = Kind::run;
  std::size_t command = 0;  // index into Script::commands, for run
  int line = 0;
  std::size_t chain = 0;  // the chain it happens in
  std::vector<std::size_t> chains;
};

struct SyntaxError {
  int line = 0;
  std::string what;  // "unexpected `done'", "missing closing quote"
};

struct Script {
  std::vector<Command> commands;  // every simple command reached, in order of execution
  std::vector<Event> events;
  bool truncated = false;                   // a limit was reached (loop or command count)
  std::vector<std::string> notes;           // e.g. "line 12: while loop read once"
  std::optional<SyntaxError> syntax_error;  // commands before it are still listed
  std::string interpreter;                  // of the #! line: "bash", "python3"; "" without one
  bool is_shell = true;                     // false: another language, nothing was read
};

inline constexpr std::size_t kMaxCommands = 10'000;
inline constexpr std::size_t kMaxExpansion = 1 << 20;  // bytes
inline constexpr std::size_t kMaxDepth = 64;           // of nesting, calls and substitutions
inline constexpr std::size_t kMaxScript = 4 << 20;     // bytes; longer ones are not read

/// `variables` are those known at start (the batch environment). `arguments` are $1, $2, ….
/// Bounded: at most 10,000 commands and 1 MiB of expansion, whatever the script says.
Script read_script(std::string_view text, const std::map<std::string, std::string>& variables,
                   const std::vector<std::string>& arguments);

}  // namespace berth::script
