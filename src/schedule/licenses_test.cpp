// Licences over time: who waits for one has a planned start and is in nobody's way.
#include <gtest/gtest.h>

#include "job/state_test_fixture.h"
#include "schedule/schedule.h"

namespace berth::schedule {
namespace {

using job::JobId;
using job::testing::Controller;
using job::testing::kStart;

job::Policy licensed() {
  job::Policy policy;
  policy.licenses = {{"m", 2}, {"x", 1}};
  return policy;
}

class Licenses : public ::testing::Test {
 protected:
  void pass() { scheduler.run(c.state, c.now); }

  Controller c{licensed()};
  Scheduler scheduler;
};

TEST_F(Licenses, AWaitingJobHasAPlannedStartAndOthersGoOn) {
  const JobId first = c.submit("-L m:2 -n1 --mem=1G -t 60 -w gpu1");
  pass();
  const JobId waits = c.submit("-L m -n1 --mem=1G -t 60 -w gpu1");
  const JobId other = c.submit("-n1 --mem=1G -t 600 -w gpu1");
  pass();
  EXPECT_EQ(c.shown(waits), "PENDING Licenses");
  EXPECT_EQ(c.at(waits).reason_text, "2 of 2 licences m are in use, asked 1");
  EXPECT_EQ(c.at(waits).planned_start, kStart + 3600);
  EXPECT_EQ(c.at(waits).planned_nodes, "gpu1");
  EXPECT_EQ(c.shown(other), "RUNNING+CONFIGURING None");
  c.begun(first);
  c.runs_to_the_end(first);
  pass();
  EXPECT_EQ(c.shown(waits), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.at(waits).licenses_taken, "m:1");
}

TEST_F(Licenses, NobodyTakesWhatIsPlannedForOneBefore) {
  c.submit("-L m -n1 --mem=1G -t 60 -w gpu1");
  pass();
  const JobId both = c.submit("-L m:2 -n1 --mem=1G -t 60 -w gpu2");
  const JobId behind = c.submit("-L m -n1 --mem=1G -t 61 -w gpu3");
  const JobId before = c.submit("-L m -n1 --mem=1G -t 60 -w gpu3");
  pass();
  EXPECT_EQ(c.at(both).planned_start, kStart + 3600);
  EXPECT_EQ(c.shown(before), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.shown(behind), "PENDING Licenses") << "it would delay the one before it";
  EXPECT_EQ(c.at(behind).planned_start, kStart + 7200);
}

TEST_F(Licenses, OneOfSeveralIsTaken) {
  const JobId a = c.submit("-L x|m:2 -n1 --mem=1G -t 60 -w gpu1");
  const JobId b = c.submit("-L x|m:2 -n1 --mem=1G -t 60 -w gpu1");
  const JobId d = c.submit("-L x|m:2 -n1 --mem=1G -t 60 -w gpu1");
  pass();
  EXPECT_EQ(c.at(a).licenses_taken, "x:1");
  EXPECT_EQ(c.at(b).licenses_taken, "m:2");
  EXPECT_EQ(c.shown(d), "PENDING Licenses");
  EXPECT_EQ(c.at(d).planned_start, kStart + 3600);
}

}  // namespace
}  // namespace berth::schedule
