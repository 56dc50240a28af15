// The option table is sound, and docs/options.md says what it says.
#include "request/table.h"
#include "request/environment.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace berth::request {
namespace {

constexpr Command kCommands[] = {Command::sbatch, Command::salloc, Command::srun};

TEST(Table, RowsAreInOrderAndNamesAreUnique) {
  for (const OptionRow& row : option_rows()) EXPECT_EQ(&row_of(row.opt), &row);
  for (const Command command : kCommands) {
    const std::vector<std::string> names = long_names(command);
    const std::set<std::string> unique(names.begin(), names.end());
    EXPECT_EQ(unique.size(), names.size()) << command_name(command);
    std::set<char> letters;
    for (const OptionRow& row : option_rows()) {
      if (row.letter == 0 || (row.letter_in & bit_of(command)) == 0) continue;
      EXPECT_TRUE(letters.insert(row.letter).second) << row.letter << command_name(command);
    }
  }
}

TEST(Table, EveryRowIsCompleteAndItsLetterBelongsToItsCommands) {
  for (const OptionRow& row : option_rows()) {
    EXPECT_FALSE(row.name.empty());
    EXPECT_FALSE(row.note.empty()) << row.name;
    EXPECT_NE(row.commands, 0) << row.name;
    EXPECT_EQ(row.letter_in & ~row.commands, 0) << row.name;
    EXPECT_EQ(row.letter == 0, row.letter_in == 0) << row.name;
  }
}

TEST(Table, VariablesBelongToOneOptionEach) {
  for (const Command command : kCommands) {
    std::set<std::string> seen;
    for (const OptionRow& row : option_rows()) {
      if ((row.commands & bit_of(command)) == 0) continue;
      for (const std::string& name : variables_of(row, command)) {
        EXPECT_TRUE(is_input_variable(name)) << name;
        EXPECT_TRUE(seen.insert(name).second) << name;
      }
    }
  }
  EXPECT_EQ(variables_of(row_of(Opt::gres), Command::srun),
            (std::vector<std::string>{"SLURM_STEP_GRES", "SLURM_GRES"}));
  EXPECT_EQ(variables_of(row_of(Opt::output), Command::srun),
            (std::vector<std::string>{"SRUN_OUTPUT", "SLURM_STDOUTMODE"}));
  EXPECT_EQ(variables_of(row_of(Opt::hint), Command::sbatch),
            (std::vector<std::string>{"SBATCH_HINT", "SLURM_HINT"}));
}

// BERTH_UPDATE=1 request_test --gtest_filter=Table.PageIsUpToDate writes the page anew.
TEST(Table, PageIsUpToDate) {
  const std::string path = std::string(BERTH_SOURCE_DIR) + "/docs/options.md";
  if (std::getenv("BERTH_UPDATE") != nullptr) std::ofstream(path) << options_page();
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), options_page()) << "run with BERTH_UPDATE=1 to write " << path;
}

}  // namespace
}  // namespace berth::request
