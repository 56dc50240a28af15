// Arrays, heterogeneous jobs and dependencies between jobs.
#include <gtest/gtest.h>

#include "job/dependency.h"
#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

TEST(Arrays, ElementsLeaveTheRestAsTheyStartAndTheLastKeepsTheId) {
  Controller c;
  const JobId id = c.submit("--array=1-3 --mem=1G");
  EXPECT_EQ(c.at(id).shown(), "1_[1-3]");
  ASSERT_TRUE(c.start(id));
  EXPECT_EQ(c.at(2).shown(), "1_1");
  EXPECT_EQ(c.at(id).shown(), "1_[2-3]");
  ASSERT_TRUE(c.start(id));
  ASSERT_TRUE(c.start(id));
  EXPECT_EQ(c.at(id).shown(), "1_3");
  EXPECT_EQ(c.state.records_of(id).size(), 3U);
  EXPECT_EQ(c.state.find_element(id, 2)->id, 3U);
  for (const JobId one : {2U, 3U, 1U}) {
    c.begun(one);
    EXPECT_FALSE(c.state.all_ended(id));
    c.runs_to_the_end(one);
  }
  EXPECT_TRUE(c.state.all_ended(id));
  EXPECT_TRUE(c.idle());
}

TEST(Arrays, TheLimitKeepsElementsBack) {
  Controller c;
  const JobId id = c.submit("--array=1-5%2 --mem=1G");
  EXPECT_TRUE(c.start(id));
  EXPECT_TRUE(c.start(id));
  std::string reason;
  EXPECT_FALSE(c.state.eligible(c.at(id), c.now, reason));
  EXPECT_EQ(reason, "JobArrayTaskLimit");
  c.begun(2);
  c.runs_to_the_end(2);
  EXPECT_TRUE(c.start(id));
}

TEST(Arrays, CancelledElementsLeaveNoRecord) {
  Controller c;
  const JobId id = c.submit("--array=1-4 -H --mem=1G");
  wire::JobName some = Controller::named(id);
  some.set_array_set("2-3");
  ASSERT_TRUE(c.state.cancel_named(some, {kAlice, {}, false, false, false}, c.now));
  EXPECT_EQ(c.at(id).shown(), "1_[1,4]");
  EXPECT_EQ(c.state.jobs().size(), 1U);
  EXPECT_FALSE(
      c.state.cancel_named(Controller::named(id, 2), {kAlice, {}, false, false, false}, c.now));
  ASSERT_TRUE(
      c.state.cancel_named(Controller::named(id), {kAlice, {}, false, false, false}, c.now));
  EXPECT_EQ(c.shown(id), "CANCELLED JobHeldUser");
}

TEST(Arrays, PickedElementsAreJobsOfTheirOwn) {
  Controller c;
  const JobId id = c.submit("--array=1-4 --mem=1G");
  const auto picked = c.state.pick(Controller::named(id, 3), c.now);
  ASSERT_TRUE(picked);
  ASSERT_TRUE(c.state.hold(picked->front(), kAlice, false, c.now));
  EXPECT_EQ(c.at(picked->front()).shown(), "1_3");
  EXPECT_EQ(c.shown(picked->front()), "PENDING JobHeldUser");
  EXPECT_EQ(c.at(id).shown(), "1_[1-2,4]");
}

TEST(Arrays, IndicesAreCheckedAlsoWhenTheRestIsKnownToFit) {
  Controller c;
  c.submit("--mem=1G");
  EXPECT_FALSE(c.state.submit(submission("--mem=1G --array=1-5000"), 1, kAlice, c.now));
}

TEST(Het, ComponentsStartAndEndTogether) {
  Controller c;
  const JobId id = c.submit("-n1 --mem=1G : -n2 --mem=1G");
  EXPECT_EQ(c.at(id + 1).shown(), "1+1");
  EXPECT_EQ(c.at(id).what->job_name, "job.sh");
  EXPECT_EQ(c.at(id + 1).what->job_name, "job.sh");
  ASSERT_TRUE(c.start(id));
  EXPECT_EQ(c.shown(id + 1), "RUNNING+CONFIGURING None");
  c.begun(id);
  c.begun(id + 1);
  EXPECT_TRUE(c.at(id).running->open_steps.contains(wire::kBatchStep));
  EXPECT_FALSE(c.at(id + 1).running->open_steps.contains(wire::kBatchStep));
  c.script_ends(id, 1 << 8);
  EXPECT_EQ(c.shown(id), "FAILED+COMPLETING NonZeroExitCode");
  EXPECT_EQ(c.shown(id + 1), "FAILED+COMPLETING NonZeroExitCode");
  c.gone(id);
  c.gone(id + 1);
  EXPECT_TRUE(c.idle());
}

TEST(Het, CancellingTheLeaderCancelsAll) {
  Controller c;
  const JobId id = c.submit("-n1 --mem=1G : -n2 --mem=1G");
  ASSERT_TRUE(c.state.cancel(id, {kAlice, {}, false, false, false}, c.now));
  EXPECT_EQ(c.shown(id + 1), "CANCELLED None");
}

TEST(Dependencies, Words) {
  for (const char* good : {"afterok:1", "1:2", "after:1+5", "afterany:1_3:2_*", "singleton",
                           "afterok:1?afterany:2", "afterok:1(unfulfilled)"}) {
    EXPECT_TRUE(parse_dependency(good)) << good;
  }
  for (const char* bad : {"afterok", "afterok:", "afterok:x", "later:1", "afterok:1+5", ",",
                          "afterok:1,afterany:2?3", "afterok:0"}) {
    EXPECT_FALSE(parse_dependency(bad)) << bad;
  }
}

struct Ending {
  const char* type;
  int status;
  const char* shown;
};

TEST(Dependencies, WhatTheEndOfAJobMeansToThoseWhoWait) {
  for (const Ending& row : {Ending{"afterok", 0, "PENDING None"},
                            {"afterok", 1 << 8, "PENDING DependencyNeverSatisfied"},
                            {"afternotok", 1 << 8, "PENDING None"},
                            {"afternotok", 0, "PENDING DependencyNeverSatisfied"},
                            {"afterany", 1 << 8, "PENDING None"}}) {
    Controller c;
    const JobId first = c.started("--mem=1G");
    const JobId second = c.submit(std::string("--mem=1G -d ") + row.type + ":1");
    EXPECT_EQ(c.shown(second), "PENDING Dependency") << row.type;
    EXPECT_FALSE(c.start(second));
    c.runs_to_the_end(first, row.status);
    if (std::string(row.shown) == "PENDING None") {
      EXPECT_TRUE(c.start(second)) << row.type;
    } else {
      EXPECT_EQ(c.shown(second), row.shown) << row.type;
    }
  }
}

TEST(Dependencies, AfterCountsFromTheStart) {
  Controller c;
  const JobId first = c.submit("--mem=1G");
  const JobId second = c.submit("--mem=1G -d after:1+2");
  EXPECT_EQ(c.shown(second), "PENDING Dependency");
  ASSERT_TRUE(c.start(first));
  EXPECT_EQ(c.state.next_deadline(), kStart + 120);
  c.now += 120;
  c.state.tick(c.now);
  EXPECT_TRUE(c.start(second));
}

TEST(Dependencies, AnArrayWaitsElementByElementForAftercorr) {
  Controller c;
  const JobId a = c.submit("--array=1-2 --mem=1G");
  const JobId b = c.submit("--array=1-2 --mem=1G -d aftercorr:1");
  ASSERT_TRUE(c.start(a));
  ASSERT_TRUE(c.start(a));
  const JobId first = c.state.find_element(a, 1)->id;
  const JobId second = c.state.find_element(a, 2)->id;
  c.begun(first);
  c.runs_to_the_end(first);
  const Job* free = c.state.find_element(b, 1);
  EXPECT_NE(free->id, b);
  EXPECT_TRUE(c.start(free->id));
  c.begun(second);
  c.runs_to_the_end(second, 1 << 8);
  EXPECT_EQ(c.shown(b), "PENDING DependencyNeverSatisfied");
  EXPECT_EQ(c.at(b).dependency, "aftercorr:1_*(failed)");
}

TEST(Dependencies, ACircleIsRefused) {
  Controller c;
  const JobId a = c.submit("-H --mem=1G");
  const JobId b = c.submit("--mem=1G -d afterok:1");
  const JobId third = c.submit("--mem=1G -d afterok:2");
  EXPECT_EQ(third, b + 1);
  JobChange change;
  change.dependency = "afterany:3";
  const auto refused = c.state.change(a, change, kAlice, c.now);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().what(), "Circular job dependency");
}

TEST(Dependencies, SingletonWaitsForTheOwnersJobsOfThatName) {
  Controller c;
  const JobId first = c.started("--mem=1G -J train");
  const JobId other = c.submit("--mem=1G -J train -d singleton", "sbatch", kBob);
  const JobId same = c.submit("--mem=1G -J train -d singleton");
  EXPECT_TRUE(c.start(other));
  EXPECT_EQ(c.shown(same), "PENDING Dependency");
  c.runs_to_the_end(first);
  EXPECT_TRUE(c.start(same));
}

TEST(Dependencies, UnknownJobs) {
  Controller c;
  const auto refused = c.state.submit(submission("-d afterok:77"), 1, kAlice, c.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what(), "Batch job submission failed: Job dependency problem");
  EXPECT_TRUE(c.start(c.submit("--mem=1G -d afterany:77")));
}

TEST(Dependencies, KillOnInvalidDependency) {
  Controller c;
  const JobId first = c.started("--mem=1G");
  const JobId second = c.submit("--mem=1G -d afterok:1 --kill-on-invalid-dep=yes");
  c.runs_to_the_end(first, 1 << 8);
  EXPECT_EQ(c.shown(second), "CANCELLED DependencyNeverSatisfied");
}

}  // namespace
}  // namespace berth::job::testing
