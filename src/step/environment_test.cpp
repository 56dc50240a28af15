// What a task finds in its environment.
#include "step/environment.h"

#include <gtest/gtest.h>

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
    const Environment env = StepEnvironment(spec, program, "mark").of(task);
    const auto at = env.find("CUDA_DEVICE_ORDER");
    return at == env.end() ? "" : at->second;
  };
  EXPECT_EQ(order(true, ""), "PCI_BUS_ID");
  EXPECT_EQ(order(false, ""), "");
  EXPECT_EQ(order(true, "FASTEST_FIRST"), "FASTEST_FIRST");
}

}  // namespace
}  // namespace berth::step
