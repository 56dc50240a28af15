// Jobs and reservations: who keeps clear of what, and who runs where.
#include <gtest/gtest.h>

#include "schedule/reserve_test_fixture.h"
#include "schedule/schedule.h"
#include "schedule/why.h"
#include "text/hostlist.h"

namespace berth::schedule {
namespace {

using job::JobId;
using job::testing::Controller;
using job::testing::kBob;
using job::testing::kRoot;
using job::testing::kStart;
using testing::reserve;

class ReservedJobs : public ::testing::Test {
 protected:
  void make(const std::vector<reservation::Key>& keys) {
    const auto done = reserve(c.state, keys, c.now);
    ASSERT_TRUE(done) << done.error().what() << ": " << done.error().hint;
  }
  std::string refusal(const std::vector<reservation::Key>& keys) {
    const auto done = reserve(c.state, keys, c.now);
    return done ? "" : std::string(done.error().what()) + ": " + done.error().hint;
  }
  void run() { scheduler.run(c.state, c.now); }
  void at(Time now) {
    c.now = now;
    c.state.tick(now);
    run();
  }
  std::string nodes(JobId id) { return text::compress_hostlist(c.at(id).nodes); }

  Controller c;
  Scheduler scheduler;
};

TEST_F(ReservedJobs, OthersEndBeforeItStartsOrWaitUntilItEnds) {
  make({{"ReservationName", "r"},
        {"StartTime", "now+60minutes"},
        {"Duration", "30"},
        {"Nodes", "gpu1"}});
  const JobId short_one = c.submit("-w gpu1 --exclusive -t 60");
  run();
  EXPECT_EQ(c.shown(short_one), "RUNNING+CONFIGURING None");
  c.begun(short_one);
  c.runs_to_the_end(short_one);
  const JobId long_one = c.submit("-w gpu1 -n1 --mem=1G -t 61");
  run();
  EXPECT_EQ(c.shown(long_one), "PENDING Reservation");
  EXPECT_EQ(c.at(long_one).planned_start, kStart + 90 * 60);
  EXPECT_NE(c.at(long_one).reason_text.find("gpu1 is reserved (r) from"), std::string::npos)
      << c.at(long_one).reason_text;
  const JobId elsewhere = c.submit("-w gpu2 -n1 --mem=1G -t 61");
  run();
  EXPECT_EQ(c.shown(elsewhere), "RUNNING+CONFIGURING None");
  // Explained: how short it would have to be.
  const Why why = scheduler.why(c.state, c.at(long_one), c.now);
  std::string options;
  for (const Change& change : why.changes) options += change.option + "; ";
  EXPECT_NE(options.find("--time=01:00:00"), std::string::npos) << options;
  at(kStart + 90 * 60);
  EXPECT_EQ(c.shown(long_one), "RUNNING+CONFIGURING None");
  EXPECT_TRUE(c.state.reservations().empty());
}

TEST_F(ReservedJobs, ItsJobsRunInItAndNowhereElse) {
  make({{"StartTime", "now+10minutes"}, {"Duration", "60"}, {"Nodes", "gpu1"}});
  const JobId mine = c.submit("--reservation=r -n1 --mem=1G -t 30");
  const JobId too_long = c.submit("--reservation=r -n1 --mem=1G -t 61");
  run();
  EXPECT_EQ(c.shown(mine), "PENDING Reservation");
  EXPECT_EQ(c.at(mine).planned_start, kStart + 600);
  EXPECT_EQ(c.at(mine).planned_nodes, "gpu1");
  EXPECT_EQ(c.shown(too_long), "PENDING Reservation");
  EXPECT_NE(c.at(too_long).reason_text.find("--time=01:00:00 is the most"), std::string::npos);
  at(kStart + 600);
  EXPECT_EQ(c.shown(mine), "RUNNING+CONFIGURING None");
  EXPECT_EQ(nodes(mine), "gpu1");
  EXPECT_EQ(c.at(mine).reservation, "r");
  EXPECT_EQ(c.state.find_node("gpu1")->reservation, "r");
  const auto refused = c.state.drop_reservation("r", c.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what(), "Requested reservation is in use");
}

TEST_F(ReservedJobs, WhoMayUseIt) {
  make({{"StartTime", "now"}, {"Duration", "60"}, {"Nodes", "gpu1"}});
  const auto words = [&](const std::string& line, const job::Caller& who) {
    const auto done = c.state.submit(job::testing::submission(line), 1, who, c.now);
    return done ? "" : std::string(done.error().what());
  };
  EXPECT_EQ(words("--reservation=r", kBob),
            "Batch job submission failed: Access denied to requested reservation");
  EXPECT_EQ(words("--reservation=r,x", kRoot),
            "Batch job submission failed: Requested reservation is invalid");
  EXPECT_EQ(words("--reservation=r -t 5", kRoot), "");
}

TEST_F(ReservedJobs, MaintenanceHasItsOwnWord) {
  make({{"StartTime", "now"}, {"Duration", "60"}, {"Nodes", "ALL"}, {"Flags", "MAINT"}});
  const JobId waits = c.submit("-n1 --mem=1G -t 5");
  run();
  EXPECT_EQ(c.shown(waits), "PENDING ReqNodeNotAvail, Reserved for maintenance");
  EXPECT_EQ(c.at(waits).planned_start, kStart + 3600);
  EXPECT_TRUE(c.state.find_node("gpu1")->maintenance);
  // One that is not there yet is told the same.
  const Foreseen next = scheduler.foresee(c.state, c.trial("-n1 --mem=1G -t 5"), c.now);
  EXPECT_EQ(next.start, kStart + 3600);
  EXPECT_EQ(next.why.reason, "ReqNodeNotAvail, Reserved for maintenance");
  for (const std::string& fact : scheduler.why(c.state, c.at(waits), c.now).facts) {
    EXPECT_EQ(fact.find("kept for jobs before"), std::string::npos) << fact;
  }
}

TEST_F(ReservedJobs, CoresAndDevicesOfANode) {
  make(
      {{"StartTime", "now"}, {"Duration", "60"}, {"Nodes", "gpu1"}, {"TRESPerNode", "gres/gpu=2"}});
  const Reservation& r = *c.state.find_reservation("r");
  ASSERT_EQ(r.allocation.nodes.size(), 1U);
  EXPECT_EQ(r.allocation.nodes[0].gpus().count(), 2U);
  EXPECT_FALSE(r.allocation.whole_nodes);
  const cluster::NodeIndex gpu1 = *c.state.cluster().find_node("gpu1");
  const auto all = c.state.cluster().nodes[gpu1].find_gres("gpu")->devices.size();
  const JobId outside = c.submit("-w gpu1 -n1 --mem=1G -t 5 --gpus=" + std::to_string(all - 2));
  const JobId inside = c.submit("--reservation=r -n1 --mem=1G -t 5 --gpus=2");
  const JobId more = c.submit("-w gpu1 -n1 --mem=1G -t 5 --gpus=1");
  run();
  EXPECT_EQ(c.shown(outside), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.shown(inside), "RUNNING+CONFIGURING None");
  EXPECT_TRUE(c.at(more).pending());
  EXPECT_EQ(c.at(inside).allocation.nodes[0].gpus(), r.allocation.nodes[0].gpus());
  EXPECT_TRUE(r.allocation.nodes[0].cores.contains(c.at(inside).allocation.nodes[0].cores));
}

TEST_F(ReservedJobs, MagneticDrawsThoseWhoMay) {
  make({{"StartTime", "now"}, {"Duration", "60"}, {"Nodes", "gpu2"}, {"Flags", "MAGNETIC"}});
  const JobId drawn = c.submit("-n1 --mem=1G -t 5");
  const JobId not_hers = c.submit("-n1 --mem=1G -t 5", "sbatch", kBob);
  const JobId too_long = c.submit("-n1 --mem=1G -t 500");
  run();
  EXPECT_EQ(c.at(drawn).reservation, "r");
  EXPECT_EQ(nodes(drawn), "gpu2");
  EXPECT_EQ(c.at(not_hers).reservation, "");
  EXPECT_NE(nodes(not_hers), "gpu2");
  EXPECT_EQ(c.at(too_long).reservation, "") << "it runs outside instead";
  EXPECT_FALSE(c.at(too_long).pending());
}

TEST_F(ReservedJobs, FlexMayBeginEarlierAndElsewhere) {
  make({{"StartTime", "now+60minutes"}, {"Duration", "60"}, {"Nodes", "gpu1"}, {"Flags", "FLEX"}});
  const JobId flex = c.submit("--reservation=r -n1 --mem=1G -t 600");
  run();
  EXPECT_EQ(c.shown(flex), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.at(flex).reservation, "r");
}

TEST_F(ReservedJobs, ShortJobsOfOthersMayUseItWithinItsDelay) {
  make({{"StartTime", "now"}, {"Duration", "60"}, {"Nodes", "gpu1"}, {"MaxStartDelay", "10"}});
  const JobId short_one = c.submit("-w gpu1 -n1 --mem=1G -t 10", "sbatch", kBob);
  const JobId long_one = c.submit("-w gpu1 -n1 --mem=1G -t 11", "sbatch", kBob);
  run();
  EXPECT_EQ(c.shown(short_one), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.at(short_one).reservation, "");
  EXPECT_EQ(c.shown(long_one), "PENDING Reservation");
}

TEST_F(ReservedJobs, CreationNeedsWhatItWantsToBeFree) {
  const JobId busy = c.submit("-w gpu1 -n1 --mem=1G -t 60");
  run();
  ASSERT_FALSE(c.at(busy).pending());
  EXPECT_EQ(
      refusal({{"StartTime", "now+59minutes"}, {"Duration", "5"}, {"Nodes", "gpu1"}}).substr(0, 29),
      "Requested nodes are busy: job");
  make({{"ReservationName", "a"},
        {"StartTime", "now+60minutes"},
        {"Duration", "60"},
        {"Nodes", "gpu1"}});
  EXPECT_NE(refusal({{"ReservationName", "b"},
                     {"StartTime", "now+90minutes"},
                     {"Duration", "5"},
                     {"Nodes", "gpu[1-2]"}})
                .find("gpu1 is in reservation a"),
            std::string::npos);
  make({{"ReservationName", "over"},
        {"StartTime", "now+90minutes"},
        {"Duration", "5"},
        {"Nodes", "gpu[1-2]"},
        {"Flags", "OVERLAP"}});
  make({{"ReservationName", "force"},
        {"StartTime", "now"},
        {"Duration", "5"},
        {"Nodes", "gpu1"},
        {"Flags", "IGNORE_JOBS"}});
  // As many as are asked for, of those that are free.
  make({{"ReservationName", "two"}, {"StartTime", "now"}, {"Duration", "60"}, {"NodeCnt", "2"}});
  const Reservation& two = *c.state.find_reservation("two");
  ASSERT_EQ(two.allocation.nodes.size(), 2U);
  EXPECT_TRUE(two.flags.has(reservation::Flag::replace_down));
  for (const cluster::NodeShare& share : two.allocation.nodes) {
    EXPECT_NE(c.state.cluster().nodes[share.node].name, "gpu1");
  }
  EXPECT_EQ(refusal({{"ReservationName", "many"},
                     {"StartTime", "now"},
                     {"Duration", "5"},
                     {"NodeCnt", "500"}})
                .substr(0, 45),
            "Requested node configuration is not available");
}

TEST_F(ReservedJobs, ANodeThatGoesAwayIsReplaced) {
  make({{"StartTime", "now"}, {"Duration", "60"}, {"NodeCnt", "1"}});
  const cluster::NodeIndex before = c.state.find_reservation("r")->allocation.nodes[0].node;
  job::NodeChange drain;
  drain.state = "DRAIN";
  drain.reason = "fan";
  drain.caller = kRoot;
  ASSERT_TRUE(c.state.change_node(c.state.cluster().nodes[before].name, drain, c.now));
  run();
  ASSERT_EQ(c.state.find_reservation("r")->allocation.nodes.size(), 1U);
  EXPECT_NE(c.state.find_reservation("r")->allocation.nodes[0].node, before);
}

TEST_F(ReservedJobs, AtTheEndJobsAreEndedOrHeld) {
  make({{"StartTime", "now"}, {"Duration", "60"}, {"Nodes", "gpu1"}});
  const JobId runs = c.submit("--reservation=r --exclusive -t 60");
  const JobId waits = c.submit("--reservation=r --exclusive -t 50");
  run();
  c.begun(runs);
  // Its time is cut short.
  Reservation shorter = *c.state.find_reservation("r");
  shorter.end = kStart + 600;
  c.state.keep_reservation(shorter, c.now);
  run();
  at(kStart + 600);
  EXPECT_EQ(c.at(runs).base, job::Base::timeout);
  c.gone(runs);
  at(kStart + 601);
  EXPECT_TRUE(c.state.reservations().empty());
  EXPECT_EQ(c.shown(waits), "PENDING ReservationDeleted");
  ASSERT_TRUE(c.state.release(waits, job::testing::kAlice, c.now));
  run();
  EXPECT_EQ(c.shown(waits), "RUNNING+CONFIGURING None") << "without the reservation";
  EXPECT_EQ(c.at(waits).reservation, "");
}

TEST_F(ReservedJobs, WithoutHoldTheyRunOutside) {
  make({{"StartTime", "now"},
        {"Duration", "10"},
        {"Nodes", "gpu1"},
        {"Flags", "NO_HOLD_JOBS_AFTER"}});
  const JobId waits = c.submit("--reservation=r -n1 --mem=1G -t 50");
  run();
  EXPECT_TRUE(c.at(waits).pending());
  at(kStart + 600);
  EXPECT_EQ(c.shown(waits), "RUNNING+CONFIGURING None");
}

TEST_F(ReservedJobs, ADailyOneComesAgain) {
  make({{"StartTime", "now+60minutes"}, {"Duration", "60"}, {"Nodes", "gpu1"}, {"Flags", "DAILY"}});
  const JobId day = c.submit("-w gpu1 -n1 --mem=1G -t 24:00:00");
  const JobId between = c.submit("-w gpu1 -n1 --mem=1G -t 22:00:00");
  run();
  EXPECT_TRUE(c.at(day).pending());
  EXPECT_EQ(c.at(day).planned_start, 0) << "there is no gap so long";
  EXPECT_EQ(c.at(between).planned_start, kStart + 2 * 3600);
  at(kStart + 2 * 3600);
  EXPECT_EQ(c.shown(between), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.state.find_reservation("r")->start, kStart + 25 * 3600);
}

TEST(ReservedLicenses, AreKeptForItsJobs) {
  job::Policy policy;
  policy.licenses = {{"cad", 2}};
  Controller c(policy);
  Scheduler scheduler;
  const auto made = reserve(c.state,
                            {{"StartTime", "now+30minutes"},
                             {"Duration", "60"},
                             {"Licenses", "cad:2"},
                             {"Flags", "LICENSE_ONLY"}},
                            c.now);
  ASSERT_TRUE(made) << made.error().what();
  const JobId short_one = c.submit("-L cad:1 -n1 --mem=1G -t 30");
  const JobId long_one = c.submit("-L cad:1 -n1 --mem=1G -t 31");
  const JobId mine = c.submit("--reservation=r -L cad:2 -n1 --mem=1G -t 20");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(short_one), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.shown(long_one), "PENDING Licenses");
  EXPECT_EQ(c.shown(mine).substr(0, 7), "PENDING");
  c.begun(short_one);
  c.runs_to_the_end(short_one);
  c.now = kStart + 1800;
  c.state.tick(c.now);
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.shown(mine), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.shown(long_one), "PENDING Licenses");
}

TEST_F(ReservedJobs, TheyAreAsBeforeAfterARestart) {
  make({{"ReservationName", "a"},
        {"StartTime", "now"},
        {"Duration", "60"},
        {"Nodes", "gpu1"},
        {"Flags", "MAINT"},
        {"Comment", "fans"}});
  make({{"ReservationName", "b"},
        {"StartTime", "now+2hours"},
        {"Duration", "60"},
        {"CoreCnt", "3"}});
  job::Stored stored;
  stored.reservations = c.state.take_dirty().reservations;
  ASSERT_EQ(stored.reservations.size(), 2U);
  job::State again(place::corpus::make(), {});
  again.load(stored, [](std::uint64_t) { return std::nullopt; }, c.now);
  ASSERT_EQ(again.reservations().size(), 2U);
  EXPECT_EQ(again.find_node("gpu1")->reservation, "a");
  EXPECT_EQ(again.find_reservation("a")->comment, "fans");
  EXPECT_EQ(again.find_reservation("b")->allocation.nodes[0].cores.count(), 3U);
}

}  // namespace
}  // namespace berth::schedule
