#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include "job/state_test_fixture.h"

namespace berth::schedule {
namespace {

using job::JobId;
using job::testing::Controller;
using job::testing::kAlice;
using job::testing::kStart;

TEST(Schedule, StartsInOrderOfArrival) {
  Controller c;
  Scheduler scheduler;
  const JobId a = c.submit("-w gpu1 --exclusive -t 10");
  const JobId b = c.submit("-w gpu1 --exclusive -t 10");
  EXPECT_EQ(scheduler.run(c.state, c.now).started, 1U);
  EXPECT_EQ(c.shown(a), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.shown(b), "PENDING Resources");
  c.begun(a);
  c.runs_to_the_end(a);
  EXPECT_EQ(scheduler.run(c.state, c.now).started, 1U);
}

TEST(Schedule, BackfillNeverDelaysTheFirst) {
  Controller c;
  Scheduler scheduler;
  const JobId busy = c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  const JobId first = c.submit("-w gpu[1-2] --exclusive -N2 -t 60");
  const JobId long_one = c.submit("-w gpu2 --exclusive -t 61");
  const JobId short_one = c.submit("-w gpu2 --exclusive -t 59");
  const JobId elsewhere = c.submit("-w gpu3 --exclusive -t 1000");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(busy), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.shown(first), "PENDING Resources");
  EXPECT_EQ(c.at(first).planned_start, kStart + 3600);
  EXPECT_EQ(c.at(first).planned_nodes, "gpu[1-2]");
  EXPECT_EQ(c.shown(long_one), "PENDING Priority");
  EXPECT_EQ(c.shown(short_one), "RUNNING+CONFIGURING None");
  EXPECT_TRUE(c.at(short_one).backfilled);
  EXPECT_EQ(c.shown(elsewhere), "RUNNING+CONFIGURING None");
}

TEST(Schedule, WhoWantsANodeThatIsAwayKeepsNobodyBack) {
  Controller c;
  Scheduler scheduler;
  job::NodeChange drain;
  drain.state = "DRAIN";
  drain.reason = "fan";
  drain.caller = job::testing::kRoot;
  ASSERT_TRUE(c.state.change_node("gpu1", drain, c.now));
  const JobId waits = c.submit("-w gpu[1-2] -N2 --exclusive -t 60");
  const JobId other = c.submit("-w gpu2 --exclusive -t 600");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(waits), "PENDING ReqNodeNotAvail, UnavailableNodes:gpu1");
  EXPECT_EQ(c.shown(other), "RUNNING+CONFIGURING None");
}

TEST(Schedule, AJobBesideTheReservationStarts) {
  Controller c;
  Scheduler scheduler;
  c.submit("-w gpu1 --gpus=4 --mem=1G -n1 -t 60");
  scheduler.run(c.state, c.now);
  const JobId first = c.submit("-w gpu1 --gpus=4 --mem=1G -n1 -t 60");
  const JobId small = c.submit("-w gpu1 --mem=1G -n1 -t 600");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(first), "PENDING Resources");
  EXPECT_EQ(c.shown(small), "RUNNING+CONFIGURING None") << "it takes nothing the first one needs";
}

TEST(Schedule, AJobThatWouldBeInTheWayStartsOnOtherNodes) {
  Controller c;
  Scheduler scheduler;
  c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  // The first one waits for gpu1 and is going to have gpu[1-2]; a small job would choose gpu2.
  const JobId first = c.submit("-w gpu[1-2] --exclusive -N2 -t 60");
  const JobId small = c.submit("-n1 --mem=1G -t 600 -x cpu[1-2]");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(first), "PENDING Resources");
  ASSERT_EQ(c.shown(small), "RUNNING+CONFIGURING None");
  EXPECT_NE(c.at(small).nodes.front(), "gpu2");
}

TEST(Schedule, AJobInAnotherPartitionIsNotHeldUp) {
  Controller c;
  Scheduler scheduler;
  c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  const JobId first = c.submit("-w gpu1 --exclusive -t 60");
  const JobId other = c.submit("-x gpu1 -n1 --mem=1G -t 600 -p ml");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(first), "PENDING Resources");
  EXPECT_EQ(c.shown(other), "RUNNING+CONFIGURING None");
}

TEST(Schedule, LaterJobsArePlannedBehindTheFirst) {
  Controller c;
  Scheduler scheduler;
  c.submit("-w gpu1 --exclusive -t 60");
  c.submit("-w gpu2 --exclusive -t 90");
  scheduler.run(c.state, c.now);
  const JobId first = c.submit("-w gpu1 --exclusive -t 60");
  const JobId second = c.submit("-w gpu2 --exclusive -t 60");
  const JobId third = c.submit("-w gpu1 --exclusive -t 30");
  c.now += 5;
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.at(first).planned_start, kStart + 3600);
  EXPECT_EQ(c.at(second).planned_start, kStart + 5400);
  EXPECT_EQ(c.at(second).planned_nodes, "gpu2");
  EXPECT_EQ(c.at(third).planned_start, kStart + 7200) << "after the first one's limit";
  const auto gpu = [&](const char* name) { return c.state.find_node(name)->planned; };
  EXPECT_TRUE(gpu("gpu1"));
  EXPECT_TRUE(gpu("gpu2"));
  EXPECT_FALSE(gpu("gpu3"));
}

TEST(Schedule, CompleteWaitKeepsOthersBackForAWhile) {
  job::Policy policy;
  policy.complete_wait = 30;
  Controller c(policy);
  Scheduler scheduler;
  const JobId a = c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  c.begun(a);
  c.script_ends(a);
  const JobId b = c.submit("-w gpu2 --exclusive -t 60");
  EXPECT_EQ(scheduler.run(c.state, c.now).started, 0U);
  EXPECT_EQ(c.state.next_deadline(), c.now + 30);
  c.now += 30;
  c.state.tick(c.now);
  EXPECT_EQ(scheduler.run(c.state, c.now).started, 1U);
  EXPECT_EQ(c.at(b).base, job::Base::running);
}

TEST(Schedule, ASubmissionLooksAtTheNewJobAlone) {
  Controller c;
  Scheduler scheduler;
  c.submit("--exclusive -N8 -t 60");
  scheduler.run(c.state, c.now);
  for (int i = 0; i < 50; ++i) c.submit("-n1 --mem=1G -t 100");
  scheduler.run(c.state, c.now);
  c.submit("-n1 --mem=1G -t 100");
  const Figures figures = scheduler.run(c.state, c.now);
  EXPECT_EQ(figures.examined, 1U);
  EXPECT_LE(figures.placed, 1U) << "no room is seen at a glance; one placement finds its start";
  EXPECT_FALSE(scheduler.run(c.state, c.now).backfill);
}

TEST(Schedule, AHigherPriorityOvertakes) {
  Controller c;
  Scheduler scheduler;
  const JobId busy = c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  const JobId first = c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  const JobId second = c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  ASSERT_TRUE(c.state.top(second, job::testing::kRoot, c.now));
  c.begun(busy);
  c.runs_to_the_end(busy);
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(second), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.shown(first), "PENDING Resources");
}

TEST(Schedule, WithoutBackfillNobodyOvertakesInAPartition) {
  Controller c;
  Scheduler scheduler;
  Options options;
  options.backfill = false;
  c.submit("-w gpu1 --exclusive -t 60");
  const JobId first = c.submit("-w gpu1 --exclusive -t 60");
  const JobId second = c.submit("-w gpu2 --exclusive -t 1");
  scheduler.run(c.state, c.now, options);
  EXPECT_EQ(c.shown(first), "PENDING Resources");
  EXPECT_EQ(c.shown(second), "PENDING Priority");
}

TEST(Schedule, OnlySoManyOfAPartitionArePlanned) {
  Controller c;
  Scheduler scheduler;
  Options options;
  options.planned_in_partition = 1;
  c.submit("-w gpu1 --exclusive -t 60");
  c.submit("-w gpu2 --exclusive -t 60");
  const JobId first = c.submit("-w gpu1 --exclusive -t 60");
  const JobId second = c.submit("-w gpu2 --exclusive -t 60");
  scheduler.run(c.state, c.now, options);
  EXPECT_EQ(c.at(first).planned_start, kStart + 3600);
  EXPECT_EQ(c.at(second).planned_start, 0);
}

TEST(Schedule, AJobIsShortenedToSlipInBeforeAnother) {
  Controller c;
  Scheduler scheduler;
  c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  c.submit("-w gpu[1-2] --exclusive -N2 -t 60");  // both nodes, in an hour
  const JobId too_long = c.submit("-w gpu2 --exclusive -t 120 --time-min=61");
  const JobId fits = c.submit("-w gpu2 --exclusive -t 120 --time-min=30");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(too_long), "PENDING Priority");
  ASSERT_EQ(c.shown(fits), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.at(fits).time_limit_minutes, 60U) << "as long as nobody else needs the node";
}

TEST(Schedule, WhatACancelledJobWasToHaveIsForOthers) {
  Controller c;
  Scheduler scheduler;
  c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  const JobId first = c.submit("-w gpu[1-2] --exclusive -N2 -t 60");
  const JobId second = c.submit("-w gpu2 --exclusive -t 120");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(second), "PENDING Priority");
  ASSERT_TRUE(c.state.cancel(first, {kAlice, {}, false, false, false}, c.now));
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(second), "RUNNING+CONFIGURING None");
}

TEST(Schedule, AnArrayStartsAsManyElementsAsFit) {
  Controller c;
  Scheduler scheduler;
  const JobId id = c.submit("--array=1-10 --exclusive -t 60");
  EXPECT_EQ(scheduler.run(c.state, c.now).started, 8U);
  EXPECT_EQ(c.at(id).shown(), "1_[9-10]");
  EXPECT_EQ(c.shown(id), "PENDING Resources");
}

TEST(Schedule, ComponentsStartTogetherOrNotAtAll) {
  Controller c;
  Scheduler scheduler;
  const JobId busy = c.submit("-w gpu2 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  const JobId het = c.submit("-w gpu1 --exclusive : -w gpu2 --exclusive");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.at(het).base, job::Base::pending);
  EXPECT_TRUE(c.state.usage().at(*c.state.cluster().find_node("gpu1")).idle());
  c.begun(busy);
  c.runs_to_the_end(busy);
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.at(het).base, job::Base::running);
  EXPECT_EQ(c.at(het + 1).base, job::Base::running);
}

TEST(Schedule, NothingStartsOnNodesThatAreNotThere) {
  Controller c;
  Scheduler scheduler;
  c.state.node_lost("gpu1", c.now);
  const JobId id = c.submit("-w gpu1 --mem=1G");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.at(id).base, job::Base::pending);
  c.up("gpu1");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.at(id).base, job::Base::running);
}

}  // namespace
}  // namespace berth::schedule
