// The option table, expanded from options.def once at compile time, and the page made from it.
#include "request/table.h"

#include <algorithm>
#include <array>
#include <cassert>

#include <fmt/format.h>

#include "text/words.h"

namespace berth::request {
namespace {

constexpr Commands B = kSbatch;
constexpr Commands A = kSalloc;
constexpr Commands R = kSrun;

constexpr auto kRows = std::to_array<OptionRow>({
#define BERTH_OPTION(id, name, letter, letter_in, argument, commands, env, status, note) \
  {Opt::id, name, letter, letter_in, Argument::argument, commands, env, Status::status, note},
#include "request/options.def"
#undef BERTH_OPTION
});

constexpr auto kAliases = std::to_array<OptionAlias>({
#define BERTH_OPTION(...)
#define BERTH_ALIAS(id, name, commands) {Opt::id, name, commands},
#include "request/options.def"
#undef BERTH_OPTION
});

std::string_view prefix_of(Command command) {
  switch (command) {
    case Command::sbatch:
      return "SBATCH_";
    case Command::salloc:
      return "SALLOC_";
    case Command::srun:
      return "SLURM_";
  }
  return "";
}

char sign_of(Command command) {
  switch (command) {
    case Command::sbatch:
      return 'B';
    case Command::salloc:
      return 'A';
    case Command::srun:
      return 'R';
  }
  return 0;
}

std::string_view word_of(Status status) {
  switch (status) {
    case Status::honoured:
      return "honoured";
    case Status::recorded:
      return "recorded";
    case Status::refused:
      return "refused";
    case Status::no_op:
      return "no-op";
    case Status::told:
      return "told";
  }
  return "";
}

/// "`-n`, `--ntasks`" with the argument's form.
std::string spelling(const OptionRow& row) {
  std::string out = row.letter != 0 ? fmt::format("`-{}`, ", row.letter) : "";
  out += fmt::format("`--{}{}`", row.name,
                     row.argument == Argument::required   ? "="
                     : row.argument == Argument::optional ? "[=]"
                                                          : "");
  for (const OptionAlias& alias : kAliases) {
    if (alias.opt == row.opt) out += fmt::format(", `--{}`", alias.name);
  }
  return out;
}

std::string commands_text(Commands commands) {
  std::string out;
  if ((commands & B) != 0) out += "sbatch ";
  if ((commands & A) != 0) out += "salloc ";
  if ((commands & R) != 0) out += "srun ";
  if (!out.empty()) out.pop_back();
  return out;
}

std::string variables_text(const OptionRow& row) {
  std::vector<std::string> names;
  for (const Command command : {Command::sbatch, Command::salloc, Command::srun}) {
    if ((row.commands & bit_of(command)) == 0) continue;
    for (const std::string& name : variables_of(row, command)) {
      const std::string quoted = fmt::format("`{}`", name);
      if (std::ranges::find(names, quoted) == names.end()) names.push_back(quoted);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string_view command_name(Command command) {
  switch (command) {
    case Command::sbatch:
      return "sbatch";
    case Command::srun:
      return "srun";
    case Command::salloc:
      return "salloc";
  }
  return "";
}

Commands bit_of(Command command) {
  switch (command) {
    case Command::sbatch:
      return kSbatch;
    case Command::salloc:
      return kSalloc;
    case Command::srun:
      return kSrun;
  }
  return 0;
}

std::span<const OptionRow> option_rows() {
  return kRows;
}
std::span<const OptionAlias> option_aliases() {
  return kAliases;
}

const OptionRow& row_of(Opt opt) {
  const auto at = static_cast<std::size_t>(opt);
  assert(at < kRows.size() && kRows[at].opt == opt);
  return kRows[at];
}

std::string dashed(Opt opt) {
  return fmt::format("--{}", row_of(opt).name);
}

std::vector<std::string> variables_of(const OptionRow& row, Command command) {
  std::vector<std::string> out;
  if (row.variables.empty()) return out;
  for (const std::string_view entry : text::split(row.variables, ' ')) {
    const std::size_t colon = entry.find(':');
    assert(colon != std::string_view::npos);
    if (entry.substr(0, colon).find(sign_of(command)) == std::string_view::npos) continue;
    const std::string_view name = entry.substr(colon + 1);
    out.push_back(name.starts_with('=') ? std::string(name.substr(1))
                                        : fmt::format("{}{}", prefix_of(command), name));
  }
  return out;
}

std::vector<std::string> long_names(Command command) {
  std::vector<std::string> out;
  for (const OptionRow& row : kRows) {
    if ((row.commands & bit_of(command)) != 0) out.emplace_back(row.name);
  }
  for (const OptionAlias& alias : kAliases) {
    if ((alias.commands & bit_of(command)) != 0) out.emplace_back(alias.name);
  }
  std::ranges::sort(out);
  return out;
}

std::string options_page() {
  std::string page =
      "# Options\n\n"
      "Every option of sbatch, salloc and srun, made from `src/request/options.def`.\n\n"
      "* **honoured**: the plan follows it.\n"
      "* **recorded**: its value is checked and kept for whoever queues and starts the job.\n"
      "* **refused**: berth cannot do it, says so by name, and says what to do instead.\n"
      "* **no-op**: accepted; there is nothing for it to do.\n"
      "* **told**: accepted; berth says on a line that begins `berth: ` that it has no effect, "
      "and\n"
      "  why.\n\n"
      "`=` takes a value, `[=]` takes one only when it is attached. The command line beats the\n"
      "variables, which beat `#SBATCH` lines. Besides these variables srun reads\n"
      "`SLURM_HOSTFILE` and `SLURM_DIST_PLANESIZE`, and every command `SLURM_EXIT_ERROR`.\n\n"
      "| Option | Commands | Variables | Status | Meaning |\n|---|---|---|---|---|\n";
  for (const OptionRow& row : kRows) {
    page += fmt::format("| {} | {} | {} | {} | {} |\n", spelling(row), commands_text(row.commands),
                        variables_text(row), word_of(row.status), row.note);
  }
  page +=
      "\n## Lines of other systems\n\n"
      "`#PBS` or `#BSUB` lines (not both in one script) are translated unless `--ignore-pbs` is\n"
      "given; what is not in this table is left alone, with a warning.\n\n"
      "| Line | Means |\n|---|---|\n"
      "| `#PBS -N name`, `#BSUB -J name` | `--job-name` |\n"
      "| `#PBS -A name`, `#BSUB -P name` | `--account` |\n"
      "| `#PBS -q name`, `#BSUB -q name` | `--partition` |\n"
      "| `#PBS -o`, `-e`; `#BSUB -o`, `-e` | `--output`, `--error` |\n"
      "| `#PBS -t list`, `-J list` | `--array` |\n"
      "| `#PBS -l walltime=t`, `#BSUB -W t` | `--time` (hours and minutes in `-W`) |\n"
      "| `#PBS -l nodes=n[:ppn=p]` | `--nodes`, `--ntasks-per-node` |\n"
      "| `#PBS -l mem=size` | `--mem` |\n"
      "| `#BSUB -n tasks` | `--ntasks` |\n";
  return page;
}

}  // namespace berth::request
