// What a task finds in its environment.
#include "step/environment.h"

#include <gmock/gmock.h>

namespace berth::step {
namespace {

void add(google::protobuf::RepeatedPtrField<wire::Variable>* to, const std::string& name,
         const std::string& value) {
  wire::Variable* one = to->Add();
  one->set_name(name);
  one->set_value(value);
}

TEST(StepEnvironment, CudaCountsGpusAlongTheBusUnlessTheUserSaysOtherwise) {
  const auto order = [](bool gpus, const std::string& users) -> std::string {
    wire::StepSpec spec;
    wire::Program program;
    if (!users.empty()) add(program.mutable_environment(), "CUDA_DEVICE_ORDER", users);
    wire::TaskSpec& task = *spec.add_tasks();
    if (gpus) add(task.mutable_variables(), "CUDA_VISIBLE_DEVICES", "2");
    const StepEnvironment all(spec, program, "mark");
    return std::string(all.of(task).find("CUDA_DEVICE_ORDER").value_or(""));
  };
  EXPECT_EQ(order(true, ""), "PCI_BUS_ID");
  EXPECT_EQ(order(false, ""), "");
  EXPECT_EQ(order(true, "FASTEST_FIRST"), "FASTEST_FIRST");
}

TEST(StepEnvironment, TasksPerNodeWhereAllHaveAsMany) {
  struct Row {
    const char* master;    // "" = daemons, scripts
    const char* per_node;  // of the step
    const char* own;       // from the user or the job
    const char* launcher;
    const char* told;  // SLURM_NTASKS_PER_NODE and RANK
  };
  for (const Row& row : {
           Row{"n1", "2(x3)", "", "", "2 0"},
           Row{"n1", "2", "", "torch", "2 0"},
           Row{"n1", "2(x2),1", "", "", "- 0"},
           Row{"n1", "2(x3)", "4", "", "4 0"},
           Row{"n1", "2(x3)", "", "none", "2 -"},
           Row{"n1", "2(x3)", "4", "none", "4 -"},
           Row{"", "1(x3)", "", "", "- -"},
       }) {
    wire::StepSpec spec;
    spec.set_master(row.master);
    add(spec.mutable_common(), "SLURM_STEP_TASKS_PER_NODE", row.per_node);
    wire::Program program;
    program.set_launcher(row.launcher);
    if (*row.own != 0) add(program.mutable_environment(), "SLURM_NTASKS_PER_NODE", row.own);
    const wire::TaskSpec& task = *spec.add_tasks();
    const StepEnvironment all(spec, program, "mark");
    const TaskEnvironment env = all.of(task);
    const auto value = [&](const char* name) { return std::string(env.find(name).value_or("-")); };
    EXPECT_EQ(value("SLURM_NTASKS_PER_NODE") + " " + value("RANK"), row.told)
        << row.per_node << " " << row.own << " " << row.launcher;
  }
}

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
