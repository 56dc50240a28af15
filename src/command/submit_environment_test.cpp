#include "command/submit_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::command {
namespace {

using request::Environment;
using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

const Environment kMine = {{"FOO", "foo"}, {"BAR", "bar"}, {"SLURM_X", "1"}, {"SBATCH_P", "q"}};

TEST(Export, AllAndMore) {
  const ExportChoice choice = read_export("ALL,FOO=1");
  EXPECT_TRUE(choice.all);
  EXPECT_THAT(exported(kMine, choice), Contains(Pair("FOO", "1")));
  EXPECT_THAT(exported(kMine, choice), Contains(Pair("BAR", "bar")));
}

TEST(Export, ListPassesOnlyWhatItNamesAndSlurmsOwn) {
  EXPECT_THAT(exported(kMine, read_export("FOO=a,BAR,MISSING")),
              UnorderedElementsAre(Pair("FOO", "a"), Pair("BAR", "bar"), Pair("SLURM_X", "1")));
  EXPECT_THAT(exported(kMine, read_export("NONE")), UnorderedElementsAre(Pair("SLURM_X", "1")));
  EXPECT_TRUE(read_export("NIL").nothing);
}

TEST(Export, CommasInQuotesBelongToTheValue) {
  EXPECT_THAT(read_export("A='1,2',B").set, ElementsAre(Pair("A", "1,2")));
  EXPECT_THAT(read_export("A='1,2',B").named, ElementsAre("B"));
}

TEST(JobEnvironment, InputVariablesTravelHiddenWithAList) {
  request::Request request;
  request.export_env = "NIL";
  const auto environment = job_environment(kMine, request);
  ASSERT_TRUE(environment.has_value());
  EXPECT_THAT(environment->variables,
              UnorderedElementsAre(Pair("SLURM_X", "1"), Pair("SBATCH_P", "q")));
  EXPECT_THAT(environment->hidden, ElementsAre("SBATCH_P"));
}

TEST(StepEnvironment, AListWithoutAllLeavesOutPathAndSaysSo) {
  request::Request request;
  request.export_env = "FOO=1";
  request.argv = {"sh"};
  const Environment mine = {{"PATH", "/bin"}, {"FOO", "x"}, {"BAR", "y"}};
  const Environment tasks = step_environment(mine, request);
  EXPECT_THAT(tasks, UnorderedElementsAre(Pair("FOO", "1")));
  EXPECT_THAT(advice_without_path(tasks, request), testing::HasSubstr("--export=FOO=1"));
  request.argv = {"/bin/sh"};
  EXPECT_EQ(advice_without_path(tasks, request), "");
  request.argv = {"sh"};
  EXPECT_EQ(advice_without_path(mine, request), "");
}

}  // namespace
}  // namespace berth::command
