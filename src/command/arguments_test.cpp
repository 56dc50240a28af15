// The command line of `berth explain`.
#include "command/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::command {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<ExplainArguments> parse(const std::vector<std::string>& words) {
  return parse_explain(words);
}

TEST(Arguments, Script) {
  const auto a = parse({"--conf", "/x", "--json", "job.sh", "--json", "b"});
  ASSERT_TRUE(a);
  EXPECT_EQ(a->conf, "/x");
  EXPECT_TRUE(a->json);
  EXPECT_TRUE(a->is_script);
  EXPECT_THAT(a->words, ElementsAre("job.sh", "--json", "b"));
}

TEST(Arguments, Command) {
  const auto a = parse({"--emulate=2x4:a100", "--busy", "f", "--busy=g", "--all", "--", "/bin/srun",
                        "-n", "2", "a"});
  ASSERT_TRUE(a);
  EXPECT_EQ(a->emulate, "2x4:a100");
  EXPECT_THAT(a->busy, ElementsAre("f", "g"));
  EXPECT_TRUE(a->all);
  EXPECT_FALSE(a->verbose);
  EXPECT_TRUE(parse({"--verbose", "job.sh"})->verbose);
  EXPECT_FALSE(a->is_script);
  EXPECT_EQ(a->command, request::Command::srun);
  EXPECT_THAT(a->words, ElementsAre("-n", "2", "a"));
  EXPECT_EQ(parse({"-"})->words.front(), "-");
  EXPECT_TRUE(parse({"--json", "--help"})->help);
}

TEST(Arguments, Refused) {
  struct Row {
    std::vector<std::string> words;
    const char* text;
  };
  for (const Row& row :
       {Row{{}, "nothing to explain"}, Row{{"--conf"}, "--conf needs a value"},
        Row{{"--jsn", "a"}, "do you mean --json?"},
        Row{{"-N2", "job.sh"}, "options of sbatch go after --"}, Row{{"--"}, "must be a command"},
        Row{{"--", "squeue"}, "squeue is not"}}) {
    const auto a = parse(row.words);
    ASSERT_FALSE(a);
    EXPECT_THAT(std::string(a.error().what()), HasSubstr(row.text));
    EXPECT_EQ(a.error().exit_code, 1);
  }
}

}  // namespace
}  // namespace berth::command
