// --switches=n@t: a job waits for few switches, but not for ever, and its start is known.
#include <gtest/gtest.h>

#include "job/record.h"
#include "job/state_test_fixture.h"
#include "place/network_test_fixture.h"
#include "schedule/schedule.h"

namespace berth::schedule {
namespace {

using job::JobId;
using job::testing::Controller;
using job::testing::kStart;

/// n1-4 on leaf1, n5-8 on leaf2; n1 and n5 are taken for an hour and for two.
struct TwoLeaves {
  explicit TwoLeaves(job::Policy policy = {}) : c(std::move(policy), place::corpus::tree({4, 4})) {
    c.submit("-w n1 --exclusive -t 60");
    c.submit("-w n5 --exclusive -t 120");
    run();
  }
  void run() { scheduler.run(c.state, c.now); }
  void pass_time(job::Time seconds) {
    c.now += seconds;
    c.state.tick(c.now);
    run();
  }
  Controller c;
  Scheduler scheduler;
};

TEST(Switches, AJobWaitsForFewAndThenTakesMore) {
  TwoLeaves t;
  const JobId id = t.c.submit("-N4 --exclusive -t 10 --switches=1@2");
  t.run();
  EXPECT_EQ(t.c.shown(id), "PENDING Resources");
  EXPECT_EQ(t.c.at(id).reason_text,
            "what is free is on 2 switches (leaf[1-2]); --switches=1 waits for one, for 2 minutes "
            "more");
  EXPECT_EQ(t.c.at(id).planned_start, kStart + 120);
  EXPECT_EQ(t.c.at(id).planned_nodes, "n[2-4,6]");
  EXPECT_EQ(t.c.state.next_deadline(), kStart + 120);
  t.pass_time(119);
  EXPECT_EQ(t.c.shown(id), "PENDING Resources");
  t.pass_time(1);
  EXPECT_EQ(t.c.shown(id), "RUNNING+CONFIGURING None");
}

TEST(Switches, TheWaitIsStored) {
  TwoLeaves t;
  const JobId id = t.c.submit("-N4 --exclusive -t 10 --switches=1@2");
  t.run();
  const job::Job& job = t.c.at(id);
  EXPECT_EQ(job.switch_wait_since, kStart);
  const wire::JobRecord record = job::to_record(t.c.state.cluster(), job);
  EXPECT_EQ(job::from_record(t.c.state.cluster(), record).switch_wait_since, kStart);
}

TEST(Switches, OneThatComesFreeInTimeIsTaken) {
  job::Policy patient;
  patient.max_switch_wait = 86400;
  TwoLeaves t(patient);
  const JobId id = t.c.submit("-N4 --exclusive -t 10 --switches=1@24:00:00");
  t.run();
  EXPECT_EQ(t.c.at(id).planned_start, kStart + 3600);  // n1 ends
  EXPECT_EQ(t.c.at(id).planned_nodes, "n[1-4]");
}

TEST(Switches, NobodyWaitsLongerThanIsAllowed) {
  TwoLeaves t;  // max_switch_wait=300
  const JobId asks = t.c.submit("-N4 --exclusive -t 10 --switches=1@24:00:00");
  t.run();
  EXPECT_EQ(t.c.at(asks).planned_start, kStart + 300);
  const JobId at_once = t.c.submit("-N2 --exclusive -t 1 --switches=1");
  t.run();
  EXPECT_EQ(t.c.shown(at_once), "RUNNING+CONFIGURING None");  // one switch has room for it
}

TEST(Switches, ThePatienceCountsFromWhenItCouldHaveStarted) {
  TwoLeaves t;
  const JobId id = t.c.submit("-N7 --exclusive -t 10 --switches=1");  // no leaf ever holds it
  t.run();
  EXPECT_EQ(t.c.at(id).planned_start, kStart + 3600 + 300);
  EXPECT_EQ(t.c.at(id).switch_wait_since, 0);
}

}  // namespace
}  // namespace berth::schedule
