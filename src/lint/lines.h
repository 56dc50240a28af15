// The lines of a batch script as sbatch looks at them: which are directives, which only look like
// one, and where the directives end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::lint {

enum class LineKind {
  directive,   // "#SBATCH …" at the start of a line, before the first command
  late,        // the same after the first command: not read
  indented,    // "  #SBATCH --x", read as a comment
  spaced,      // "# SBATCH --x"
  doubled,     // "##SBATCH --x"
  wrong_case,  // "#sbatch --x"
};

/// A line that is a directive or looks like one (its first word begins with a dash).
struct Line {
  int number = 0;  // from 1
  LineKind kind = LineKind::directive;
  std::string options;             // the text after the marker, trimmed
  std::vector<std::string> words;  // as sbatch splits it; of directives only
  std::string cut_word;            // a word that an unquoted # cut short, as it was left over …
  std::string cut_off;             // … and what was cut off
};

struct Lines {
  std::vector<Line> marked;
  std::optional<int> first_command;  // its line number
  std::string first_command_text;
  bool dos_breaks = false;
  bool has_interpreter = false;  // begins with #!
  bool byte_order_mark = false;  // begins with the three bytes of a UTF-8 mark
};

/// Linear in the size of the script; keeps at most kMaxMarked lines.
inline constexpr std::size_t kMaxMarked = 1000;
Lines read_lines(std::string_view script);

}  // namespace berth::lint
