// Which lines count as directives, which only look like one.
#include "lint/lines.h"

#include <gtest/gtest.h>

namespace berth::lint {
namespace {

TEST(Lines, KindsOfHeaderLines) {
  const Lines lines = read_lines(
      "#!/bin/bash\n"
      "#SBATCH --nodes=2\n"
      "  #SBATCH --ntasks=4\n"
      "# SBATCH --time=10\n"
      "##SBATCH --mem=1G\n"
      "#sbatch -N 2\n"
      "# the SBATCH lines above\n"
      "# SBATCH is the name of the marker\n"
      "\n"
      "echo\n"
      "#SBATCH -J late\n");
  ASSERT_EQ(lines.marked.size(), 6U);
  EXPECT_EQ(lines.marked[0].kind, LineKind::directive);
  EXPECT_EQ(lines.marked[0].words, std::vector<std::string>{"--nodes=2"});
  EXPECT_EQ(lines.marked[1].kind, LineKind::indented);
  EXPECT_EQ(lines.marked[2].kind, LineKind::spaced);
  EXPECT_EQ(lines.marked[3].kind, LineKind::doubled);
  EXPECT_EQ(lines.marked[4].kind, LineKind::wrong_case);
  EXPECT_EQ(lines.marked[5].kind, LineKind::late);
  EXPECT_EQ(lines.marked[5].number, 11);
  EXPECT_EQ(lines.first_command, 10);
  EXPECT_EQ(lines.first_command_text, "echo");
}

TEST(Lines, HereDocumentsHoldScriptsOfTheirOwn) {
  const Lines lines = read_lines(
      "#!/bin/bash\n"
      "cat > other.sh <<'EOF'\n"
      "#SBATCH --nodes=2\n"
      "EOF\n"
      "#SBATCH --nodes=3\n");
  ASSERT_EQ(lines.marked.size(), 1U);
  EXPECT_EQ(lines.marked[0].number, 5);
}

TEST(Lines, CutByHash) {
  struct Case {
    std::string_view line;
    std::string_view cut_word;
    std::string_view cut_off;
  };
  for (const Case& each : std::vector<Case>{
           {"#SBATCH -J run#3", "run", "#3"},
           {"#SBATCH --mem=1G # enough", "", ""},
           {"#SBATCH --mem=1G #enough", "", ""},
           {"#SBATCH -J 'run#3'", "", ""},
           {"#SBATCH -J run\\#3", "run\\", "#3"},
           {"#SBATCH -J my\\ run#3", "my run", "#3"},
       }) {
    const Lines lines = read_lines(each.line);
    ASSERT_EQ(lines.marked.size(), 1U) << each.line;
    EXPECT_EQ(lines.marked[0].cut_word, each.cut_word) << each.line;
    EXPECT_EQ(lines.marked[0].cut_off, each.cut_off) << each.line;
  }
}

TEST(Lines, FormOfTheFile) {
  EXPECT_TRUE(read_lines("#!/bin/sh\r\necho\r\n").dos_breaks);
  EXPECT_FALSE(read_lines("#!/bin/sh\necho\n").dos_breaks);
  EXPECT_TRUE(read_lines("\xEF\xBB\xBF#!/bin/sh\n").byte_order_mark);
  EXPECT_FALSE(read_lines("echo").has_interpreter);
  EXPECT_TRUE(read_lines("").marked.empty());
}

TEST(Lines, Bounded) {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "#SBATCH -N1\n";
  EXPECT_LE(read_lines(many).marked.size(), kMaxMarked);
  EXPECT_TRUE(read_lines("#SBATCH " + std::string(1 << 20, 'x')).marked.empty());
}

}  // namespace
}  // namespace berth::lint
