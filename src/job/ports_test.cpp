// Ports of living steps do not meet on a machine; they come back with the step.
#include "job/ports.h"

#include <gmock/gmock.h>

#include <set>
#include <vector>

namespace berth::job {
namespace {

TEST(Ports, LivingStepsOfAMachineHaveDifferentOnes) {
  Ports ports({100, 103});
  std::vector<std::shared_ptr<const PortLease>> held;
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 4; ++i) {
    held.push_back(ports.take("a", 1));
    ASSERT_TRUE(held.back());
    seen.insert(held.back()->first);
  }
  EXPECT_THAT(seen, ::testing::ElementsAre(100, 101, 102, 103));
  EXPECT_FALSE(ports.take("a", 1));
  EXPECT_TRUE(ports.take("b", 1));  // another machine
  held[2].reset();
  ASSERT_TRUE(held[2] = ports.take("a", 1));
  EXPECT_EQ(held[2]->first, 102U);
}

TEST(Ports, OneThatCameBackIsNotTheNext) {
  Ports ports({100, 199});
  const std::uint32_t first = ports.take("a", 1)->first;
  EXPECT_NE(ports.take("a", 1)->first, first);
}

TEST(Ports, SeveralAreInARow) {
  Ports ports({100, 105});
  const auto in_the_way = ports.adopt("a", 102, 1);
  const auto three = ports.take("a", 3);
  ASSERT_TRUE(three);
  EXPECT_EQ(three->first, 103U);
  EXPECT_FALSE(ports.take("a", 3));
  EXPECT_FALSE(ports.take("a", 7));
  EXPECT_FALSE(ports.take("a", 0));
}

TEST(Ports, WhatTwoHaveAdoptedIsTakenUntilBothAreGone) {
  Ports ports({100, 100});
  auto one = ports.adopt("a", 100, 1);
  auto other = ports.adopt("a", 100, 1);
  one.reset();
  EXPECT_FALSE(ports.take("a", 1));
  other.reset();
  EXPECT_TRUE(ports.take("a", 1));
}

}  // namespace
}  // namespace berth::job
