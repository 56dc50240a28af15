// A job that is started again never runs twice at once: when its next attempt may begin after its
// node went away, was taken out, came back.
#include <gtest/gtest.h>

#include "job/record.h"
#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

Policy policy_of_two() {
  Policy policy;
  policy.slurmd_timeout = 300;
  policy.requeue_lease = 3600;
  policy.requeue_delay = 0;
  return policy;
}

void set_node(Controller& c, const std::string& name, const std::string& state,
              const std::string& reason = "") {
  NodeChange change;
  change.state = state;
  if (!reason.empty()) change.reason = reason;
  change.caller = kRoot;
  const auto done = c.state.change_node(name, change, c.now);
  EXPECT_TRUE(done) << done.error().what();
}

wire::NodeReport holding(JobId id, std::uint32_t attempt, bool ending = false) {
  wire::NodeReport report;
  wire::HeldJob* held = report.add_jobs();
  held->set_job_id(id);
  held->set_attempt(attempt);
  held->set_ending(ending);
  return report;
}

/// The node is silent from now on, and DOWN; c.now is then.
void silent(Controller& c, const std::string& name) {
  c.state.node_lost(name, c.now);
  c.now += c.state.policy().slurmd_timeout;
  c.state.tick(c.now);
  EXPECT_TRUE(c.state.find_node(name)->down);
}

bool may_start(Controller& c, JobId id) {
  std::string reason;
  return c.state.queue().contains(c.state.key_for(c.at(id))) &&
         c.state.eligible(c.at(id), c.now, reason);
}

/// What the store has, read by the next controller.
void restart(Controller& c, Time rest_until = 0) {
  Stored stored;
  for (const auto& [id, job] : c.state.jobs()) {
    stored.jobs.push_back(to_record(c.state.cluster(), job));
  }
  for (cluster::NodeIndex i = 0; i < c.state.cluster().nodes.size(); ++i) {
    stored.nodes.push_back(to_record(c.state.cluster().nodes[i].name, c.state.node(i)));
  }
  stored.leases_rest_until = rest_until;
  const Policy policy = c.state.policy();
  std::destroy_at(&c.state);
  std::construct_at(&c.state, place::corpus::make(), policy);
  c.state.load(stored, [&](std::uint64_t blob) { return std::optional(c.blobs[blob]); }, c.now);
}

TEST(Lease, IsAsLongAsTheJobAskedFor) {
  struct Case {
    const char* words;
    const char* command;
    std::uint32_t timeout;
    bool requeue_by_default;
    Time lease;
  };
  for (const Case& one : {
           Case{"--requeue", "sbatch", 300, true, 300},
           Case{"--requeue", "sbatch", 300, false, 300},
           Case{"--requeue", "sbatch", 10, true, 10},
           Case{"--requeue", "sbatch", 5000, true, 5000},
           Case{"", "sbatch", 300, true, 3600},
           Case{"", "sbatch", 5000, true, 5000},
           Case{"", "sbatch", 300, false, 0},
           Case{"--no-requeue", "sbatch", 300, true, 0},
           Case{"--requeue", "sbatch", 0, true, 0},  // no node is ever given up
           Case{"", "salloc", 300, true, 0},
       }) {
    Policy policy = policy_of_two();
    policy.slurmd_timeout = one.timeout;
    policy.job_requeue = one.requeue_by_default;
    Controller c(policy);
    const JobId id = c.started(std::string("-w gpu1 --mem=1G ") + one.words, one.command);
    EXPECT_EQ(c.at(id).lease, one.lease) << one.words << one.command << one.timeout;
  }
  // Of several components none is started again by itself.
  Controller c(policy_of_two());
  const JobId het = c.started("--requeue -n1 --mem=1G : -n1 --mem=1G");
  EXPECT_EQ(c.at(het).lease, 0);
}

TEST(LastAttempt, TheNextBeginsWhenTheLeaseIsOver) {
  Controller c(policy_of_two());
  const JobId asked = c.started("-w gpu1 --mem=1G --requeue");
  const JobId usual = c.started("-w gpu1 --mem=1G");
  silent(c, "gpu1");
  EXPECT_EQ(c.shown(asked), "PENDING BeginTime");
  EXPECT_EQ(c.at(asked).not_before(), kStart + 301);
  EXPECT_EQ(c.at(usual).not_before(), kStart + 3601);
  EXPECT_NE(c.at(usual).reason_text.find("gpu1"), std::string::npos);
  EXPECT_FALSE(may_start(c, asked));
  // What a user says about the begin does not help.
  JobChange change;
  change.begin_time = c.now;
  ASSERT_TRUE(c.state.change(asked, change, kAlice, c.now));
  EXPECT_FALSE(may_start(c, asked));
  c.now = kStart + 301;
  EXPECT_EQ(c.state.next_deadline(), c.now);
  c.state.tick(c.now);
  EXPECT_TRUE(may_start(c, asked));
  EXPECT_FALSE(may_start(c, usual));
  c.now = kStart + 3601;
  c.state.tick(c.now);
  EXPECT_TRUE(may_start(c, usual));
}

TEST(LastAttempt, ANodeThatIsBackTellsEarlier) {
  Controller c(policy_of_two());
  const JobId gone = c.started("-w gpu1 --mem=1G");
  const JobId there = c.started("-w gpu1 --mem=1G");
  silent(c, "gpu1");
  c.now += 10;
  c.state.take_effects();
  c.up("gpu1", holding(there, 1));
  EXPECT_TRUE(may_start(c, gone));
  // Its lease counts anew there: no time is known any more.
  EXPECT_EQ(c.shown(there), "PENDING NodeDown");
  const auto ends = c.effects<EndJob>();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].job, there);
  c.now += 10000;
  c.state.tick(c.now);
  EXPECT_FALSE(may_start(c, there));
  c.gone(there, "gpu1");
  EXPECT_TRUE(may_start(c, there));
}

TEST(LastAttempt, ANodeThatIsSilentOnceMoreHasItsLeaseOnceMore) {
  Controller c(policy_of_two());
  const JobId id = c.started("-w gpu1 --mem=1G");
  silent(c, "gpu1");
  c.up("gpu1", holding(id, 1));
  const Time again = c.now;
  set_node(c, "gpu1", "RESUME");
  silent(c, "gpu1");
  EXPECT_EQ(c.at(id).not_before(), again + 3601);
}

TEST(LastAttempt, SoHasANodeThatStayedDownWhenItWasBack) {
  for (const unsigned returns : {0U, 1U, 2U}) {  // 0: nobody resumes it
    Policy policy = policy_of_two();
    policy.return_to_service = returns;
    Controller c(policy);
    const JobId id = c.started("-w gpu1 --mem=1G");
    silent(c, "gpu1");
    c.up("gpu1", holding(id, 1));
    EXPECT_EQ(c.state.find_node("gpu1")->down, returns == 0);
    const Time again = c.now;
    silent(c, "gpu1");
    EXPECT_EQ(c.at(id).not_before(), again + 3601);
    c.now = again + 3601;
    c.state.tick(c.now);
    EXPECT_TRUE(may_start(c, id));
  }
}

TEST(LastAttempt, WithoutALeaseOnlyAWordHelps) {
  Controller c(policy_of_two());
  const JobId id = c.started("-w gpu1 --mem=1G --no-requeue");
  JobChange change;
  change.requeue = true;
  ASSERT_TRUE(c.state.change(id, change, kAlice, c.now));
  silent(c, "gpu1");
  EXPECT_EQ(c.shown(id), "PENDING NodeDown");
  c.now += 1000000;
  c.state.tick(c.now);
  EXPECT_FALSE(may_start(c, id));
  // To take the node out is not to say that its machine is off.
  set_node(c, "gpu1", "DOWN", "nobody knows");
  EXPECT_FALSE(may_start(c, id));
  set_node(c, "gpu1", "POWER_DOWN_FORCE");
  EXPECT_TRUE(may_start(c, id));
  EXPECT_TRUE(c.state.find_node("gpu1")->down);
}

TEST(LastAttempt, ANodeThatRespondsIsNotSaidToBeOff) {
  Controller c(policy_of_two());
  NodeChange change;
  change.state = "POWER_DOWN_FORCE";
  change.caller = kRoot;
  const auto done = c.state.change_node("gpu1", change, c.now);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().what(), "node gpu1 responds: it is not off");
}

TEST(LastAttempt, OfANodeThatIsTakenOutAndCanHearAnAnswerIsAwaited) {
  Controller c(policy_of_two());
  const JobId id = c.started("-w gpu1 --mem=1G");
  c.state.take_effects();
  set_node(c, "gpu1", "DOWN", "fan");
  EXPECT_EQ(c.shown(id), "PENDING+COMPLETING+REQUEUED BeginTime");
  const auto ends = c.effects<EndJob>();
  ASSERT_FALSE(ends.empty());
  EXPECT_TRUE(ends[0].now);
  c.now += 100000;
  c.state.tick(c.now);
  EXPECT_FALSE(may_start(c, id));
  c.gone(id, "gpu1");
  EXPECT_TRUE(may_start(c, id));
}

TEST(LastAttempt, OfANodeThatIsTakenOutAndThenFallsSilentTheLeaseCounts) {
  Controller c(policy_of_two());
  const JobId id = c.started("-w gpu1 --mem=1G --requeue");
  set_node(c, "gpu1", "DOWN", "fan");
  c.now += 50;
  c.state.node_lost("gpu1", c.now);
  c.now += 300;
  c.state.tick(c.now);
  EXPECT_EQ(c.shown(id), "PENDING BeginTime");
  EXPECT_EQ(c.at(id).not_before(), c.now + 1);
  EXPECT_EQ(c.state.find_node("gpu1")->reason, "fan");
}

TEST(LastAttempt, OfARequeueThatTheNodeDoesNotHear) {
  Controller c(policy_of_two());
  const JobId id = c.started("-w gpu1 --mem=1G");
  c.state.node_lost("gpu1", c.now);
  ASSERT_TRUE(c.state.requeue(id, kAlice, false, c.now));
  c.now += 300;
  c.state.tick(c.now);
  EXPECT_EQ(c.shown(id), "PENDING BeginTime");
  EXPECT_EQ(c.at(id).not_before(), kStart + 3601);
}

TEST(LastAttempt, OfAJobThatFailedWithItsNodeAndIsRequeuedByHand) {
  Controller c(policy_of_two());
  const JobId id = c.started("-w gpu1 --mem=1G --no-requeue");
  silent(c, "gpu1");
  EXPECT_EQ(c.shown(id), "NODE_FAIL NodeDown");
  JobChange allow;
  allow.requeue = true;
  EXPECT_FALSE(c.state.change(id, allow, kAlice, c.now));
  EXPECT_FALSE(c.state.requeue(id, kAlice, false, c.now));

  const JobId held = c.started("-w gpu2 --mem=1G -N1");
  c.script_ends(held, 256);
  silent(c, "gpu2");  // it has not said JobGone
  EXPECT_EQ(c.shown(held), "FAILED NonZeroExitCode");
  ASSERT_TRUE(c.state.requeue(held, kAlice, false, c.now));
  EXPECT_FALSE(may_start(c, held));
  c.up("gpu2");
  EXPECT_TRUE(may_start(c, held));
}

TEST(LastAttempt, ANodeThatEndedItByItselfIsBelieved) {
  Controller c(policy_of_two());
  const JobId told = c.started("-w gpu1 --mem=1G");
  const JobId seen = c.started("-w gpu2 --mem=1G");
  c.state.node_lost("gpu1", c.now);
  c.up("gpu1", holding(told, 1, true));
  EXPECT_EQ(c.shown(told), "PENDING+COMPLETING+REQUEUED BeginTime");
  c.gone(told, "gpu1");
  EXPECT_TRUE(may_start(c, told));
  EXPECT_EQ(c.at(told).restarts, 1U);
  // Its steps may be heard of first.
  wire::StepEnded ended;
  ended.set_node("gpu2");
  ended.set_job_id(seen);
  ended.set_attempt(1);
  ended.set_step_id(wire::kBatchStep);
  ended.add_statuses(9);
  ended.set_cause("NODE FAILURE");
  c.state.step_ended(ended, c.now);
  EXPECT_EQ(c.shown(seen), "PENDING+COMPLETING+REQUEUED BeginTime");
  c.gone(seen, "gpu2");
  EXPECT_TRUE(may_start(c, seen));
}

TEST(LastAttempt, OneOfSeveralNodesIsEnough) {
  Controller c(policy_of_two());
  const JobId id = c.started("-N2 -n2 --mem=1G --requeue");
  const std::vector<std::string> nodes = c.at(id).nodes;
  ASSERT_EQ(nodes.size(), 2U);
  silent(c, nodes[1]);
  EXPECT_EQ(c.shown(id), "PENDING+COMPLETING+REQUEUED BeginTime");
  c.gone(id, nodes[0]);
  EXPECT_FALSE(may_start(c, id));
  c.now += 1;
  c.state.tick(c.now);
  EXPECT_TRUE(may_start(c, id));
}

TEST(LastAttempt, TheNextControllerKnowsItToo) {
  Controller c(policy_of_two());
  const JobId waits = c.started("-w gpu1 --mem=1G");
  const JobId runs = c.started("-w gpu2 --mem=1G --requeue");
  silent(c, "gpu1");
  c.now += 10;
  restart(c);
  EXPECT_EQ(c.shown(waits), "PENDING BeginTime");
  EXPECT_EQ(c.at(waits).not_before(), kStart + 3601);
  EXPECT_EQ(c.at(runs).lease, 300);
  // It knows nothing of when nodes were last heard, and gives them all time from its start.
  const Time start = c.now;
  c.now += 300;
  c.state.tick(c.now);
  EXPECT_EQ(c.at(runs).not_before(), start + 301);
  c.up("gpu1");
  EXPECT_TRUE(may_start(c, waits));
}

TEST(LastAttempt, LeasesThatRestCountLater) {
  Controller c(policy_of_two());
  const JobId id = c.started("-w gpu1 --mem=1G --requeue");
  const JobId other = c.started("-w gpu2 --mem=1G --requeue");
  restart(c, c.now + 3600);
  c.up("gpu2", holding(other, 1));
  const Time heard = c.now + 100;
  c.state.node_lost("gpu2", heard);
  c.now += 400;
  c.state.tick(c.now);
  EXPECT_EQ(c.at(id).not_before(), kStart + 3600 + 301);  // it may have heard of the stop
  EXPECT_EQ(c.at(other).not_before(), heard + 301);       // it has heard of the start since
}

TEST(LastAttempt, AJobWhoseNodesNeverCameUpHasNone) {
  Controller c(policy_of_two());
  const JobId id = c.submit("-w gpu1 --mem=1G --requeue");
  ASSERT_TRUE(c.start(id));
  EXPECT_TRUE(c.at(id).may_run_on.empty());
  c.begun(id);
  c.runs_to_the_end(id);
  EXPECT_TRUE(c.at(id).may_run_on.empty());
}

}  // namespace
}  // namespace berth::job::testing
