// A running job gives nodes back.
#include <gtest/gtest.h>

#include "job/state_test_fixture.h"

namespace berth::job {
namespace {

using testing::Controller;
using testing::kAlice;
using testing::kBob;

TEST(Resize, NodesAreFreeWhenTheyHaveSaidSo) {
  Controller c;
  const JobId id = c.started("-N3 --exclusive -w gpu[1-3]");
  c.state.take_effects();
  ASSERT_TRUE(c.state.shrink(id, {"gpu1", "gpu3"}, kAlice, c.now));
  EXPECT_EQ(c.at(id).nodes, (std::vector<std::string>{"gpu1", "gpu3"}));
  const auto told = c.effects<EndJob>();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].nodes, std::vector<std::string>{"gpu2"});
  const auto gpu2 = *c.state.cluster().find_node("gpu2");
  EXPECT_FALSE(c.state.usage().at(gpu2).idle());
  c.gone(id, "gpu2");
  EXPECT_TRUE(c.state.usage().at(gpu2).idle());
  EXPECT_EQ(c.shown(id), "RUNNING None");
  c.runs_to_the_end(id);
  EXPECT_EQ(c.shown(id), "COMPLETED None");
  EXPECT_TRUE(c.idle());
}

TEST(Resize, TheEndOfTheJobWaitsForNodesThatAreLeaving) {
  Controller c;
  const JobId id = c.started("-N2 --exclusive -w gpu[1-2]");
  ASSERT_TRUE(c.state.shrink(id, {"gpu1"}, kAlice, c.now));
  c.script_ends(id);
  c.gone(id, "gpu1");
  EXPECT_TRUE(c.at(id).flags.completing);
  c.gone(id, "gpu2");
  EXPECT_FALSE(c.at(id).flags.completing);
  EXPECT_TRUE(c.idle());
}

TEST(Resize, WhatCannotBeGivenBackIsRefused) {
  Controller c;
  const JobId id = c.started("-N2 --mem=1G -w gpu[1-2]");
  EXPECT_FALSE(c.state.shrink(id, {"gpu1"}, kBob, c.now)) << "another user's";
  EXPECT_FALSE(c.state.shrink(id, {"gpu2"}, kAlice, c.now)) << "the script runs on gpu1";
  EXPECT_FALSE(c.state.shrink(id, {"gpu1", "gpu3"}, kAlice, c.now)) << "gpu3 is not its own";
  EXPECT_FALSE(c.state.shrink(id, {}, kAlice, c.now));
  EXPECT_TRUE(c.state.shrink(id, {"gpu1", "gpu2"}, kAlice, c.now)) << "nothing to give back";
  EXPECT_EQ(c.at(id).nodes.size(), 2U);
}

}  // namespace
}  // namespace berth::job
