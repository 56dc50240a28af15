// What many tasks have, and one on top.
#include "step/variables.h"

#include <gmock/gmock.h>

namespace berth::step {
namespace {

std::vector<std::string> words_of(const TaskEnvironment& env) {
  EnvironmentBlock block(env);
  std::vector<std::string> words;
  for (char** at = block.get(); *at != nullptr; ++at) words.emplace_back(*at);
  return words;
}

TEST(TaskEnvironment, HasItsOwnOnTopOfWhatAllHave) {
  const CommonVariables common(
      Environment{{"A", "1"}, {"AB", "of all"}, {"C", "3"}, {"D", ""}, {"E", "5"}});
  TaskEnvironment env(common);
  env.set("AB", "own");
  env.set("B", "new");
  env.set("B", "newer");
  env.unset("C");
  env.unset("Z");
  EXPECT_FALSE(env.set_if_unset("A", "other"));
  EXPECT_FALSE(env.set_if_unset("B", "other"));
  EXPECT_TRUE(env.set_if_unset("F", "6"));
  EXPECT_THAT(words_of(env), testing::ElementsAre("A=1", "AB=own", "B=newer", "D=", "E=5", "F=6"));
  EXPECT_EQ(env.find("A"), "1");
  EXPECT_EQ(env.find("AB"), "own");
  EXPECT_EQ(env.find("C"), std::nullopt);
  EXPECT_EQ(env.find("D"), "");
  EXPECT_EQ(env.find("a"), std::nullopt);
  EXPECT_EQ(
      env.whole(),
      (Environment{{"A", "1"}, {"AB", "own"}, {"B", "newer"}, {"D", ""}, {"E", "5"}, {"F", "6"}}));
  EXPECT_TRUE(env.set_if_unset("C", "back"));
  env.unset("B");
  EXPECT_THAT(words_of(env), testing::ElementsAre("A=1", "AB=own", "C=back", "D=", "E=5", "F=6"));
}

TEST(TaskEnvironment, CanBecomeAnother) {
  const CommonVariables common(Environment{{"A", "1"}, {"B", "2"}});
  TaskEnvironment env(common);
  env.set("C", "3");
  env.replace_all({{"B", "of a prolog"}, {"D", "4"}});
  EXPECT_THAT(words_of(env), testing::ElementsAre("B=of a prolog", "D=4"));
  EXPECT_EQ(env.find("A"), std::nullopt);
  EXPECT_EQ(env.find("C"), std::nullopt);
}

TEST(TaskEnvironment, MayHaveNothingInCommon) {
  const CommonVariables none;
  TaskEnvironment env(none);
  EXPECT_TRUE(words_of(env).empty());
  env.set("A", "1");
  EXPECT_THAT(words_of(env), testing::ElementsAre("A=1"));
}

}  // namespace
}  // namespace berth::step
