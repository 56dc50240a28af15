// Tables of who is told what to meet.
#include "launch/rendezvous.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace berth::launch {
namespace {

std::string text(const wire::StepSpec& spec, int task) {
  std::string out;
  for (const auto& [name, value] : rendezvous(spec, spec.tasks(task))) {
    out += fmt::format("{}={} ", name, value);
  }
  return out;
}

wire::StepSpec step(std::uint32_t ntasks, std::uint32_t nodes, std::uint32_t here) {
  wire::StepSpec spec;
  spec.set_master("n1");
  spec.set_port(20000);
  spec.set_ports(1);
  spec.set_ntasks(ntasks);
  spec.set_node_count(nodes);
  spec.set_node_id(1);
  for (std::uint32_t i = 0; i < here; ++i) {
    wire::TaskSpec& task = *spec.add_tasks();
    task.set_rank(4 + i);
    task.set_local_id(i);
  }
  return spec;
}

TEST(Rendezvous, ATaskIsToldWhoItIsAndWhereToMeet) {
  EXPECT_EQ(text(step(8, 2, 4), 3),
            "MASTER_ADDR=n1 MASTER_PORT=20000 WORLD_SIZE=8 RANK=7 LOCAL_RANK=3 LOCAL_WORLD_SIZE=4 "
            "NODE_RANK=1 ");
}

TEST(Rendezvous, OneTaskANodeMayBeATorchrun) {
  EXPECT_THAT(text(step(2, 2, 1), 0),
              ::testing::HasSubstr("PET_NNODES=2 PET_NODE_RANK=1 PET_MASTER_ADDR=n1 "
                                   "PET_MASTER_PORT=20000"));
  EXPECT_THAT(text(step(1, 1, 1), 0), ::testing::Not(::testing::HasSubstr("PET_")));
}

TEST(Rendezvous, AScriptHasNoRank) {
  wire::StepSpec spec = step(1, 1, 1);
  spec.clear_master();
  EXPECT_EQ(text(spec, 0), "");
}

TEST(Rendezvous, TasksOfANodeWhereAllHaveAsMany) {
  EXPECT_EQ(tasks_per_node("4(x2)"), "4");
  EXPECT_EQ(tasks_per_node("3"), "3");
  EXPECT_EQ(tasks_per_node("4(x2),3"), "");
  EXPECT_EQ(tasks_per_node(""), "");
}

TEST(Rendezvous, PortsAreARange) {
  wire::StepSpec spec = step(1, 1, 1);
  EXPECT_EQ(port_text(spec), "20000");
  spec.set_ports(4);
  EXPECT_EQ(port_text(spec), "20000-20003");
  spec.set_port(0);
  EXPECT_EQ(port_text(spec), "");
}

}  // namespace
}  // namespace berth::launch
