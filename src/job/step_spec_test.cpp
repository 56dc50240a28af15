// What a step's tickets say of the environments of its tasks.
#include "job/step_spec.h"

#include <gmock/gmock.h>

namespace berth::job {
namespace {

using request::Environment;

/// What a task finds that was told `spec`, as the supervisor puts it together.
Environment environment_told(const wire::StepSpec& spec, int task, Environment inherited) {
  for (const std::string& name : spec.unset()) inherited.erase(name);
  for (const wire::Variable& v : spec.common()) inherited[v.name()] = v.value();
  for (const wire::Variable& v : spec.tasks(task).variables()) inherited[v.name()] = v.value();
  return inherited;
}

struct Told {
  const char* what;
  Environment common;
  std::vector<Environment> own;
  Environment inherited;
  int common_told;
  int told_of_tasks;
};

TEST(StepSpec, ToldDifferencesMakeTheSameEnvironments) {
  const std::vector<Told> rows{
      {"nothing is different", {{"A", "1"}}, {{}, {}}, {{"A", "1"}}, 0, 0},
      {"new and changed ones", {{"A", "1"}, {"B", "2"}}, {{}, {}}, {{"A", "0"}, {"Z", "9"}}, 2, 0},
      {"each has its own", {{"A", "1"}}, {{{"R", "0"}}, {{"R", "1"}}}, {{"R", "7"}}, 1, 2},
      {"all have the same on top", {}, {{{"G", "0"}}, {{"G", "0"}}}, {}, 1, 0},
      {"some have one", {}, {{{"G", "0"}}, {}}, {{"G", "5"}}, 0, 1},
      {"some have another than all", {{"G", "x"}}, {{{"G", "0"}}, {}}, {{"G", "x"}}, 0, 2},
      {"one task", {{"A", "1"}}, {{{"A", "2"}}}, {{"A", "1"}}, 1, 0},
  };
  for (const Told& row : rows) {
    SCOPED_TRACE(row.what);
    wire::StepSpec spec;
    for (std::size_t i = 0; i < row.own.size(); ++i) spec.add_tasks();
    put_differences(spec, row.common, row.own, row.inherited);
    int variables = 0;
    for (std::size_t i = 0; i < row.own.size(); ++i) {
      Environment wanted = row.common;
      for (const auto& [name, value] : row.own[i]) wanted[name] = value;
      EXPECT_EQ(environment_told(spec, static_cast<int>(i), row.inherited), wanted);
      variables += spec.tasks(static_cast<int>(i)).variables_size();
    }
    EXPECT_EQ(spec.common_size(), row.common_told);
    EXPECT_EQ(variables, row.told_of_tasks);
  }
}

}  // namespace
}  // namespace berth::job
