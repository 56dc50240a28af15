// RequeueExit, RequeueExitHold, SPECIAL_EXIT, CompleteWait, MaxStepCount, rules of partitions, and
// ends that are heard of late.
#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <csignal>

#include "job/state_test_fixture.h"

namespace berth::job {
namespace {

using testing::Controller;
using testing::kAlice;
using testing::kBob;
using testing::kRoot;
using testing::submission;

Policy with_exits() {
  Policy policy;
  policy.requeue_exit = {3, 99};
  policy.requeue_exit_hold = {100};
  return policy;
}

TEST(RequeueExit, ExitCodesOfTheListStartTheJobAgain) {
  Controller c(with_exits());
  const JobId again = c.started("--mem=1G");
  const JobId held = c.started("--mem=1G");
  const JobId over = c.started("--mem=1G");
  const JobId never = c.started("--mem=1G --no-requeue");
  c.runs_to_the_end(again, 99 << 8);
  c.runs_to_the_end(held, 100 << 8);
  c.runs_to_the_end(over, 4 << 8);
  c.runs_to_the_end(never, 99 << 8);
  EXPECT_EQ(c.shown(again), "PENDING BeginTime");
  EXPECT_EQ(c.at(again).restarts, 1U);
  EXPECT_EQ(c.shown(held), "PENDING+SPECIAL_EXIT job_requeued_in_held_state");
  EXPECT_EQ(c.at(held).priority, 0U);
  EXPECT_EQ(c.shown(over), "FAILED NonZeroExitCode");
  EXPECT_EQ(c.shown(never), "FAILED NonZeroExitCode");
  ASSERT_TRUE(c.state.release(held, kAlice, c.now));
  EXPECT_EQ(c.shown(held), "PENDING None");
}

TEST(RequeueExit, TooOftenIsHeld) {
  Policy policy = with_exits();
  policy.max_batch_requeue = 1;
  policy.requeue_delay = 0;
  Controller c(policy);
  const JobId id = c.started("--mem=1G");
  c.runs_to_the_end(id, 3 << 8);
  ASSERT_TRUE(c.start(id));
  c.begun(id);
  c.runs_to_the_end(id, 3 << 8);
  EXPECT_EQ(c.shown(id), "PENDING JobHoldMaxRequeue");
}

TEST(RequeueExit, AskedForByHand) {
  Controller c;
  const JobId id = c.started("--mem=1G");
  ASSERT_TRUE(c.state.requeue(id, kAlice, true, c.now, true));
  c.gone(id);
  EXPECT_EQ(c.shown(id), "PENDING+SPECIAL_EXIT job_requeued_in_held_state");
}

TEST(Steps, NoMoreThanMaxStepCount) {
  Policy policy;
  policy.max_step_count = 1;
  Controller c(policy);
  const JobId id = c.started("--mem=1G -n4");
  wire::CreateStep ask;
  ask.set_job_id(id);
  *ask.mutable_asked() = submission("-n1", "srun").asked();
  c.state.take_effects();
  c.state.create_step(ask, 1, kAlice, c.now);
  c.state.create_step(ask, 2, kAlice, c.now);
  const auto refused = c.effects<RefuseStep>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].key, 2U);
  EXPECT_THAT(std::string(refused[0].error.what()), ::testing::HasSubstr("Step limit reached"));
}

TEST(Steps, AnSrunThatLeavesBeforeTheNodesTellHasCancelledNothing) {
  struct Row {
    const char* cause;
    int status;
    const char* state;
  };
  for (const Row& row : {Row{"", 0, "COMPLETED"}, Row{"", 3 << 8, "FAILED"},
                         Row{"", SIGTERM, "CANCELLED"}, Row{"SIGNAL", 0, "CANCELLED"}}) {
    Controller c;
    const JobId id = c.started("--mem=1G -n4");
    wire::CreateStep ask;
    ask.set_job_id(id);
    *ask.mutable_asked() = submission("-n1", "srun").asked();
    c.state.create_step(ask, 1, kAlice, c.now);
    ASSERT_TRUE(c.state.end_step(id, 0, kAlice, row.cause, c.now));
    c.state.take_dirty();
    c.step_ends(id, 0, row.status);
    const Dirty dirty = c.state.take_dirty();
    ASSERT_EQ(dirty.steps.size(), 1U);
    EXPECT_EQ(dirty.steps[0].state(), row.state) << row.cause << row.status;
  }
}

TEST(Steps, AnEndThatIsHeardOfAfterTheJobIsStored) {
  Controller c;
  const JobId id = c.started("--mem=1G -n4");
  wire::CreateStep ask;
  ask.set_job_id(id);
  *ask.mutable_asked() = submission("-n1", "srun").asked();
  c.state.create_step(ask, 1, kAlice, c.now);
  c.script_ends(id);
  c.state.take_dirty();
  c.gone(id);
  Dirty first = c.state.take_dirty();
  ASSERT_EQ(first.steps.size(), 1U);
  EXPECT_EQ(first.steps[0].state(), "CANCELLED");
  wire::StepEnded message;
  message.set_node(c.at(id).nodes.front());
  message.set_job_id(id);
  message.set_attempt(c.at(id).attempt);
  message.set_step_id(0);
  message.add_statuses(3 << 8);
  c.state.step_ended(message, c.now);
  Dirty second = c.state.take_dirty();
  ASSERT_EQ(second.steps.size(), 1U);
  EXPECT_EQ(second.steps[0].state(), "FAILED");
  EXPECT_EQ(second.steps[0].exit_status(), 3 << 8);
  EXPECT_EQ(c.at(id).derived_exit_status, 3 << 8);
  c.state.step_ended(message, c.now);
  EXPECT_TRUE(c.state.take_dirty().steps.empty()) << "said twice";
}

TEST(Partitions, WhoMayNotUseThemIsTold) {
  Policy policy;
  const std::string name = place::corpus::make().default_partition()->name;
  PartitionPolicy& rules = policy.partitions[name];
  Controller* at = nullptr;
  const auto refusal = [&](const Caller& who, const std::string& line) -> std::string {
    const auto made = at->state.submit(submission(line), 1, who, at->now);
    return made ? "" : std::string(made.error().what());
  };
  rules.members = PartitionPolicy::Members{{kAlice.gid}, {}};
  Controller groups(policy);
  at = &groups;
  EXPECT_EQ(refusal(kAlice, "--mem=1G"), "");
  EXPECT_THAT(refusal(kBob, "--mem=1G"),
              ::testing::EndsWith("User's group not permitted to use this partition"));
  EXPECT_EQ(refusal(kRoot, "--mem=1G"), "");
  rules = {};
  rules.allow_qos = {"high"};
  Controller qos(policy);
  at = &qos;
  EXPECT_EQ(refusal(kAlice, "--mem=1G --qos=high"), "");
  EXPECT_THAT(refusal(kAlice, "--mem=1G"), ::testing::EndsWith("Invalid qos specification"));
  rules = {};
  rules.require_reservation = true;
  Controller reserved(policy);
  at = &reserved;
  EXPECT_THAT(refusal(kAlice, "--mem=1G"), ::testing::EndsWith("Access/permission denied"));
  rules = {};
  rules.alloc_nodes = {"elsewhere"};
  Controller hosts(policy);
  at = &hosts;
  EXPECT_THAT(refusal(kAlice, "--mem=1G"), ::testing::EndsWith("Access/permission denied"));
}

TEST(Nodes, CreatedOnesWaitForTheirAgentAndAreRemembered) {
  Controller c;
  cluster::Cluster larger = place::corpus::make();
  cluster::Node extra = larger.nodes.front();
  extra.name = "new1";
  larger.nodes.push_back(extra);
  for (cluster::Partition& partition : larger.partitions) partition.nodes.clear();
  larger.index_nodes();
  c.state.reconfigure(larger, {}, c.now);
  c.state.keep_node("new1", "NodeName=new1 CPUs=4", c.now);
  const NodeState& node = *c.state.find_node("new1");
  EXPECT_FALSE(node.usable());
  EXPECT_EQ(node.reason, "waits for its agent to register");
  const Dirty dirty = c.state.take_dirty();
  ASSERT_EQ(dirty.nodes.size(), 1U);
  EXPECT_EQ(dirty.nodes[0].line(), "NodeName=new1 CPUs=4");
  c.state.tick(c.now + 100000);
  EXPECT_FALSE(c.state.find_node("new1")->down) << "it has never been there";
  c.up("new1");
  EXPECT_TRUE(c.state.find_node("new1")->usable());
  EXPECT_EQ(c.state.find_node("new1")->reason, "");
  c.state.take_dirty();
  c.state.drop_node("new1");
  const Dirty gone = c.state.take_dirty();
  ASSERT_EQ(gone.nodes.size(), 1U);
  EXPECT_EQ(gone.nodes[0].line(), "");
}

TEST(Nodes, StateInSlurmConfCounts) {
  cluster::Cluster cluster = place::corpus::make();
  cluster.nodes[0].usable = cluster.nodes[1].usable = false;
  cluster.nodes[0].state_reason = "DRAIN (being repaired)";
  cluster.nodes[1].state_reason = "FUTURE";
  const State state(cluster, {});
  EXPECT_TRUE(state.node(0).drain);
  EXPECT_EQ(state.node(0).reason, "being repaired");
  EXPECT_TRUE(state.node(1).future);
}

}  // namespace
}  // namespace berth::job
