// Tasks become nodes, nodes become a step.
#include "wire/step_figures.h"

#include <gtest/gtest.h>

namespace berth::wire {
namespace {

StepFigures node(std::uint32_t first_rank, std::initializer_list<std::uint64_t> memory) {
  StepFigures out;
  std::uint32_t rank = first_rank;
  for (const std::uint64_t bytes : memory) note(*out.mutable_memory(), rank++, bytes, 2 * bytes);
  return out;
}

TEST(StepFigures, AreAddedUpAcrossNodes) {
  StepFigures sum;
  add_figures(sum, node(4, {400, 100}), "n3");
  add_figures(sum, node(2, {100, 400}), "n2");
  add_figures(sum, node(0, {300, 200}), "n1");
  add_figures(sum, StepFigures(), "n4");
  const Spread& memory = sum.memory();
  EXPECT_EQ(memory.tasks(), 6U);
  EXPECT_EQ(memory.total(), 1500U);
  EXPECT_EQ(mean(memory), 250U);
  EXPECT_EQ(memory.most(), 800U);
  EXPECT_EQ(memory.most_node(), "n2") << "the lowest of equal tasks";
  EXPECT_EQ(memory.most_rank(), 3U);
  EXPECT_EQ(memory.least(), 100U);
  EXPECT_EQ(memory.least_node(), "n2");
  EXPECT_EQ(memory.least_rank(), 2U);
  EXPECT_FALSE(sum.has_cpu()) << "what nobody measured";
}

TEST(StepFigures, ATaskThatUsesNothingIsTheLeast) {
  StepFigures sum;
  add_figures(sum, node(0, {0}), "");
  EXPECT_EQ(sum.memory().tasks(), 1U);
  add_figures(sum, node(1, {7}), "");
  EXPECT_EQ(sum.memory().least(), 0U);
  EXPECT_EQ(sum.memory().least_rank(), 0U);
  EXPECT_EQ(sum.memory().most_rank(), 1U);
  EXPECT_EQ(mean(Spread()), 0U);
}

TEST(StepFigures, EveryFigureIsAddedUp) {
  StepFigures one;
  std::uint64_t value = 1;
  for (Spread* spread : {one.mutable_cpu(), one.mutable_memory(), one.mutable_address_space(),
                         one.mutable_pages(), one.mutable_read(), one.mutable_written(),
                         one.mutable_cpu_khz(), one.mutable_gpu_memory(), one.mutable_gpu_busy()}) {
    note(*spread, 0, value++);
  }
  StepFigures sum;
  add_figures(sum, one, "");
  EXPECT_EQ(sum.SerializeAsString(), one.SerializeAsString());
}

}  // namespace
}  // namespace berth::wire
