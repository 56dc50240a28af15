// Nodes that are switched off when idle and on again for a job.
#include <gtest/gtest.h>

#include "job/record.h"
#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

using Phase = NodePower::Phase;
using What = SwitchNodes::What;

Policy saving(std::uint32_t suspend = 100) {
  Policy policy;
  policy.power.enabled = true;
  policy.power.suspend = suspend;
  policy.power.suspend_timeout = 30;
  policy.power.resume_timeout = 60;
  return policy;
}

class Power : public ::testing::Test {
 protected:
  void pass(Time seconds) {
    c.now += seconds;
    c.state.tick(c.now);
  }
  Phase phase(const std::string& node) const { return c.state.find_node(node)->power.phase; }
  void off(const std::string& node) {
    NodeChange change;
    change.caller = kRoot;
    change.state = "POWER_DOWN";
    ASSERT_TRUE(c.state.change_node(node, change, c.now));
    c.state.node_lost(node, c.now);
    pass(30);
    ASSERT_EQ(phase(node), Phase::off);
    told(What::off);
  }
  /// Carries out what is asked for; the nodes of this kind.
  std::vector<std::string> told(What what) {
    std::vector<std::string> out;
    for (const SwitchNodes& one : c.effects<SwitchNodes>()) {
      c.state.power_told(one.nodes);
      if (one.what == what) out.insert(out.end(), one.nodes.begin(), one.nodes.end());
    }
    return out;
  }
  void comes(const std::string& node) {
    wire::NodeReport report;
    report.set_boot_time(c.now);
    c.up(node, report);
  }
  void ask(const std::string& node, const std::string& state) {
    NodeChange change;
    change.caller = kRoot;
    change.state = state;
    ASSERT_TRUE(c.state.change_node(node, change, c.now));
  }

  Controller c{saving()};
};

TEST_F(Power, AnIdleNodeGoesAndABusyOneStays) {
  const JobId id = c.started("-w gpu1 --mem=1G");
  pass(99);
  EXPECT_EQ(phase("gpu2"), Phase::on);
  pass(1);
  EXPECT_EQ(phase("gpu2"), Phase::powering_down);
  EXPECT_EQ(phase("gpu1"), Phase::on);
  EXPECT_FALSE(c.state.find_node("gpu2")->usable());
  c.state.node_lost("gpu2", c.now);
  pass(30);
  EXPECT_EQ(phase("gpu2"), Phase::off);
  EXPECT_TRUE(c.state.find_node("gpu2")->usable());
  pass(400);  // SlurmdTimeout is not for it
  EXPECT_FALSE(c.state.find_node("gpu2")->down);
  c.runs_to_the_end(id);
  pass(100);
  EXPECT_EQ(phase("gpu1"), Phase::powering_down);
}

TEST_F(Power, AJobWaitsForItsNodesAndItsTimeBeginsThen) {
  off("gpu1");
  const JobId id = c.submit("-w gpu[1-2] -N2 --mem=1G -t 10");
  ASSERT_TRUE(c.start(id));
  EXPECT_EQ(c.shown(id), "RUNNING+CONFIGURING None");
  EXPECT_TRUE(c.effects<BeginJob>().empty());
  EXPECT_EQ(phase("gpu1"), Phase::powering_up);
  EXPECT_EQ(c.state.waking(c.at(id))->nodes, std::vector<std::string>{"gpu1"});
  EXPECT_EQ(c.state.waking(c.at(id))->until, c.now + 60);
  EXPECT_EQ(c.at(id).limit_at(), c.now + 60 + 600);
  pass(20);
  comes("gpu1");
  const auto begins = c.effects<BeginJob>();
  ASSERT_EQ(begins.size(), 1U);
  EXPECT_EQ(begins[0].nodes.size(), 2U);
  EXPECT_EQ(c.at(id).start_time, c.now);
  EXPECT_EQ(c.at(id).limit_at(), c.now + 600);
  EXPECT_FALSE(c.state.waking(c.at(id)));
  c.begun(id);
  EXPECT_EQ(c.shown(id), "RUNNING None");
}

TEST_F(Power, WhoDoesNotComeIsDownAndTheJobStartsAgain) {
  off("gpu1");
  const JobId id = c.submit("-w gpu1 --mem=1G");
  ASSERT_TRUE(c.start(id));
  EXPECT_EQ(told(What::on), std::vector<std::string>{"gpu1"});
  pass(60);
  const NodeState& node = *c.state.find_node("gpu1");
  EXPECT_TRUE(node.down);
  EXPECT_EQ(node.reason, "ResumeTimeout reached");
  EXPECT_EQ(phase("gpu1"), Phase::off);
  EXPECT_EQ(told(What::failed), std::vector<std::string>{"gpu1"});
  EXPECT_EQ(c.shown(id), "PENDING BeginTime");
  EXPECT_TRUE(c.idle());
  ask("gpu1", "RESUME");
  EXPECT_TRUE(node.usable());
  EXPECT_EQ(phase("gpu1"), Phase::off);
}

TEST_F(Power, ACancelledJobDoesNotWaitForNodesThatAreOff) {
  off("gpu1");
  const JobId id = c.submit("-w gpu1 --mem=1G");
  ASSERT_TRUE(c.start(id));
  ASSERT_TRUE(c.state.cancel(id, {kRoot, {}, false, false, false}, c.now));
  EXPECT_EQ(c.shown(id), "CANCELLED None");
  EXPECT_TRUE(c.idle());
  comes("gpu1");
  EXPECT_EQ(phase("gpu1"), Phase::on);
  pass(100);
  EXPECT_EQ(phase("gpu1"), Phase::powering_down);
}

TEST_F(Power, WordsOfScontrol) {
  const JobId id = c.started("-w gpu1 --mem=1G");
  ask("gpu1", "POWER_DOWN");
  EXPECT_EQ(phase("gpu1"), Phase::going);
  EXPECT_TRUE(c.state.find_node("gpu1")->usable());
  ask("gpu1", "POWER_UP");
  EXPECT_EQ(phase("gpu1"), Phase::on);
  ask("gpu1", "POWER_DOWN_ASAP");
  EXPECT_FALSE(c.state.find_node("gpu1")->usable());
  c.runs_to_the_end(id);
  c.state.tick(c.now);
  EXPECT_EQ(phase("gpu1"), Phase::powering_down);
  ask("gpu1", "POWER_UP");
  EXPECT_EQ(phase("gpu1"), Phase::powering_down);  // not before SuspendTimeout
  pass(30);
  EXPECT_EQ(phase("gpu1"), Phase::powering_up);
  const JobId other = c.started("-w gpu2 --mem=1G");
  ask("gpu2", "POWER_DOWN_FORCE");
  EXPECT_EQ(c.shown(other), "PENDING+COMPLETING+REQUEUED BeginTime");
  c.gone(other);
  c.state.tick(c.now);
  EXPECT_EQ(phase("gpu2"), Phase::powering_down);
}

TEST(PowerRules, RateAndExceptions) {
  Policy policy = saving();
  policy.power.suspend_rate = 2;
  policy.power.kept_on = {{{"cpu1", "cpu2"}, 1}, {{"gpu1"}, {}}};
  Controller c(policy);
  const auto going = [&] {
    std::size_t count = 0;
    for (const cluster::Node& node : c.state.cluster().nodes) {
      if (c.state.find_node(node.name)->power.phase != Phase::on) ++count;
    }
    return count;
  };
  c.state.tick(c.now += 100);
  EXPECT_EQ(going(), 2U);
  c.state.tick(c.now += 59);
  EXPECT_EQ(going(), 2U);
  c.state.tick(c.now += 1);
  EXPECT_EQ(going(), 4U);
  for (int i = 0; i < 20; ++i) c.state.tick(c.now += 60);
  EXPECT_EQ(going(), c.state.cluster().nodes.size() - 2);  // gpu1, and one of the two
  EXPECT_EQ(c.state.find_node("gpu1")->power.phase, Phase::on);
}

TEST_F(Power, ARestartGoesOnWhereItWas) {
  off("gpu1");
  const JobId id = c.submit("-w gpu1 --mem=1G");
  ASSERT_TRUE(c.start(id));
  for (const bool started : {false, true}) {
    if (started) {
      EXPECT_EQ(told(What::on).size(), 1U);
    }
    Stored stored;
    stored.jobs.push_back(to_record(c.state.cluster(), c.at(id)));
    for (const cluster::Node& node : c.state.cluster().nodes) {
      stored.nodes.push_back(to_record(node.name, *c.state.find_node(node.name)));
    }
    State again(place::corpus::make(), saving());
    again.load(stored, [&](std::uint64_t blob) { return std::optional(c.blobs[blob]); }, c.now + 5);
    std::size_t programs = 0;
    for (const Effect& effect : again.take_effects()) {
      if (std::holds_alternative<SwitchNodes>(effect)) ++programs;
    }
    // A program that was started is not started again.
    EXPECT_EQ(programs, started ? 0U : 1U);
    ASSERT_TRUE(again.waking(*again.find(id)));
    again.tick(c.now + 70);
    EXPECT_TRUE(again.find_node("gpu1")->down);
  }
}

}  // namespace
}  // namespace berth::job::testing
