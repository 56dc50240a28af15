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

}  // namespace
}  // namespace berth::step
