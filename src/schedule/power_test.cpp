// Nodes that are switched off: used last among equals, and counted with the time they take to wake.
#include <gtest/gtest.h>

#include "job/state_test_fixture.h"
#include "schedule/schedule.h"

namespace berth::schedule {
namespace {

using job::JobId;
using job::testing::Controller;

class Asleep : public ::testing::Test {
 protected:
  static job::Policy saving() {
    job::Policy policy;
    policy.power.enabled = true;
    policy.power.suspend_timeout = 0;
    policy.power.resume_timeout = 100;
    return policy;
  }
  void off(const std::string& node) {
    job::NodeChange change;
    change.caller = job::testing::kRoot;
    change.state = "POWER_DOWN";
    ASSERT_TRUE(c.state.change_node(node, change, c.now));
    c.state.node_lost(node, c.now);
    c.state.tick(c.now);
    ASSERT_TRUE(c.state.find_node(node)->power.wakes());
  }
  void pass() { scheduler.run(c.state, c.now); }

  Controller c{saving()};
  Scheduler scheduler;
};

TEST_F(Asleep, NodesThatAreUpComeFirst) {
  off("gpu1");
  off("gpu2");
  const JobId id = c.submit("-p ml -n1 --mem=1G -t 10");
  const JobId wide = c.submit("-p ml -N3 --exclusive -t 10");
  pass();
  EXPECT_EQ(c.at(id).nodes, std::vector<std::string>{"gpu3"});
  EXPECT_EQ(c.at(wide).nodes, (std::vector<std::string>{"gpu1", "gpu2", "gpu4"}));
  EXPECT_EQ(c.at(wide).running->booting.size(), 2U);
}

TEST_F(Asleep, AJobThatWakesANodeIsInNobodysWay) {
  const JobId busy = c.submit("-w gpu1 --exclusive -t 60");
  pass();
  c.begun(busy);
  off("gpu2");
  const JobId first = c.submit("-w gpu[1-2] -N2 --exclusive -t 60");
  const JobId tight = c.submit("-w gpu2 --exclusive -t 59");  // 59 min and 100 s to wake
  const JobId fits = c.submit("-w gpu2 --exclusive -t 58");
  pass();
  EXPECT_EQ(c.at(first).planned_start, c.now + 3600);
  EXPECT_EQ(c.shown(tight), "PENDING Priority");
  EXPECT_EQ(c.shown(fits), "RUNNING+CONFIGURING None");
}

}  // namespace
}  // namespace berth::schedule
