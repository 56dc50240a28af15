// The life of jobs: from submission to free resources, and the ways that leave the straight path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "job/first_pass.h"
#include "job/state_test_fixture.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::job::testing {
namespace {

TEST(Life, FromSubmissionToFreeResources) {
  Controller c;
  const JobId id = c.submit("-N2 --mem=1G -t 10");
  EXPECT_EQ(c.shown(id), "PENDING None");
  ASSERT_TRUE(c.start(id));
  EXPECT_EQ(c.shown(id), "RUNNING+CONFIGURING None");
  EXPECT_EQ(c.effects<BeginJob>().front().nodes.size(), 2U);
  c.begun(id);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  c.now += 5;
  c.script_ends(id);
  EXPECT_EQ(c.shown(id), "COMPLETED+COMPLETING None");
  EXPECT_EQ(c.at(id).end_time, kStart + 5);
  EXPECT_FALSE(c.idle());
  c.gone(id, c.at(id).nodes[0]);
  EXPECT_FALSE(c.idle());
  c.gone(id, c.at(id).nodes[1]);
  EXPECT_TRUE(c.idle());
  EXPECT_EQ(c.shown(id), "COMPLETED None");
  EXPECT_EQ(c.state.next_deadline(), kStart + 5 + 300);
  c.state.tick(kStart + 305);
  EXPECT_EQ(c.state.find(id), nullptr);
}

TEST(Life, ExitStatusDecidesStateAndReason) {
  struct Row {
    int status;
    const char* shown;
  };
  for (const Row& row : {Row{0, "COMPLETED None"},
                         {3 << 8, "FAILED NonZeroExitCode"},
                         {9, "FAILED RaisedSignal:9(Killed)"},
                         {53, "FAILED RaisedSignal:53(Real-time_signal_19)"}}) {
    Controller c;
    const JobId id = c.started("--mem=1G");
    c.runs_to_the_end(id, row.status);
    EXPECT_EQ(c.shown(id), row.shown);
    EXPECT_EQ(c.at(id).exit_status, row.status);
  }
}

TEST(Life, ATaskWithoutMemoryEndsItsOwnersJob) {
  Controller c;
  const JobId id = c.started("--mem=1G");
  ASSERT_TRUE(c.state.finish_job(id, kAlice, wire::kOutOfMemoryStatus, c.now));
  const auto nodes = c.at(id).nodes;
  for (const auto& node : nodes) c.gone(id, node);
  EXPECT_EQ(c.shown(id), "OUT_OF_MEMORY OutOfMemory");
  EXPECT_EQ(c.at(id).exit_status, wire::kOutOfMemoryStatus);
}

TEST(Life, ATokenMakesARetryHarmless) {
  Controller c;
  const auto ask = submission("--mem=1G", "sbatch", "t1");
  const auto first = c.state.submit(ask, 1, kAlice, c.now);
  const auto second = c.state.submit(ask, 1, kAlice, c.now);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->id, second->id);
  EXPECT_TRUE(second->again);
  EXPECT_EQ(c.state.jobs().size(), 1U);
}

TEST(Life, WhatNoNodeCanMeetLeavesAFailedRecord) {
  Controller c;
  const auto done = c.state.submit(submission("--gpus=99"), 1, kAlice, c.now);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::node_config_unavailable);
  ASSERT_EQ(c.state.jobs().size(), 1U);
  EXPECT_EQ(c.shown(1), "FAILED BadConstraints");
  EXPECT_EQ(c.at(1).exit_status, 1);
  EXPECT_FALSE(c.state.submit(submission("-p nowhere"), 1, kAlice, c.now));
  EXPECT_EQ(c.state.jobs().size(), 1U);
}

TEST(Life, CancelWhilePendingRunningAndCompleting) {
  Controller c;
  const JobId held = c.submit("-H --mem=1G");
  EXPECT_EQ(c.shown(held), "PENDING JobHeldUser");
  EXPECT_FALSE(c.state.cancel(held, {kBob, {}, false, false, false}, c.now));
  ASSERT_TRUE(c.state.cancel(held, {kAlice, {}, false, false, false}, c.now));
  EXPECT_EQ(c.shown(held), "CANCELLED JobHeldUser");

  const JobId id = c.started("--mem=1G");
  c.state.take_effects();
  ASSERT_TRUE(c.state.cancel(id, {kAlice, {}, false, false, false}, c.now));
  EXPECT_EQ(c.shown(id), "CANCELLED+COMPLETING None");
  EXPECT_EQ(c.effects<EndJob>().size(), 1U);
  const auto again = c.state.cancel(id, {kAlice, {}, false, false, false}, c.now);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().what(), "Job/step already completing or completed");
  c.script_ends(id, SIGTERM);
  c.gone(id);
  EXPECT_EQ(c.shown(id), "CANCELLED None");
  EXPECT_EQ(c.at(id).exit_status, SIGTERM);
  EXPECT_EQ(c.at(id).ended_by, 1001U);
  EXPECT_TRUE(c.idle());
}

TEST(Life, RequeueGoesBackIntoTheQueueAfterItsNodesAreFree) {
  Controller c;
  const JobId id = c.started("--mem=1G");
  ASSERT_TRUE(c.state.requeue(id, kAlice, false, c.now));
  EXPECT_EQ(c.shown(id), "PENDING+COMPLETING+REQUEUED BeginTime");
  EXPECT_FALSE(c.start(id));
  c.script_ends(id, SIGTERM);
  c.gone(id);
  EXPECT_EQ(c.shown(id), "PENDING BeginTime");
  EXPECT_EQ(c.at(id).restarts, 1U);
  EXPECT_EQ(c.at(id).exit_status, 0);
  EXPECT_FALSE(c.start(id));
  c.now += 120;
  c.state.tick(c.now);
  ASSERT_TRUE(c.start(id));
  EXPECT_EQ(c.at(id).attempt, 2U);
  c.begun(id);
  ASSERT_TRUE(c.state.requeue(id, kAlice, true, c.now));
  c.script_ends(id, SIGTERM);
  c.gone(id);
  EXPECT_EQ(c.shown(id), "PENDING job_requeued_in_held_state");
  ASSERT_TRUE(c.state.release(id, kAlice, c.now));
  EXPECT_TRUE(c.start(id));
}

TEST(Life, CancelWhileARequeueIsUnderWay) {
  Controller c;
  const JobId id = c.started("--mem=1G");
  ASSERT_TRUE(c.state.requeue(id, kAlice, false, c.now));
  ASSERT_TRUE(c.state.cancel(id, {kAlice, {}, false, false, false}, c.now));
  c.script_ends(id, SIGTERM);
  c.gone(id);
  EXPECT_EQ(c.shown(id), "CANCELLED BeginTime");
  EXPECT_EQ(c.at(id).exit_status, 0);
  EXPECT_EQ(c.at(id).restarts, 1U);
}

TEST(Life, AHeldJobWithAPastBeginTimeWakesNobody) {
  Controller c;
  const JobId id = c.submit("-H --mem=1G --begin=now+1minutes");
  EXPECT_EQ(c.state.next_deadline(), std::nullopt);
  c.now += 120;
  c.state.tick(c.now);
  EXPECT_EQ(c.state.next_deadline(), std::nullopt);
  ASSERT_TRUE(c.state.release(id, kAlice, c.now));
  EXPECT_TRUE(c.start(id));
}

TEST(Life, TimeLimitWarnsThenEnds) {
  Controller c;
  const JobId id = c.started("--mem=1G -t 2 --signal=B:USR1@50");
  c.state.take_effects();
  EXPECT_EQ(c.state.next_deadline(), kStart + 70);
  c.state.tick(kStart + 70);
  const auto warned = c.effects<SignalNodes>();
  ASSERT_EQ(warned.size(), 1U);
  EXPECT_EQ(warned[0].message.signal(), SIGUSR1);
  EXPECT_TRUE(warned[0].message.batch_only());
  EXPECT_EQ(c.state.next_deadline(), kStart + 120);
  c.state.tick(kStart + 120);
  EXPECT_EQ(c.shown(id), "TIMEOUT+COMPLETING TimeLimit");
  EXPECT_EQ(c.effects<EndJob>().at(0).cause, "TIME LIMIT");
}

TEST(Life, SuspendedTimeDoesNotCount) {
  Controller c;
  const JobId id = c.started("--mem=1G -t 1");
  c.now += 30;
  ASSERT_TRUE(c.state.suspend(id, kAlice, c.now));
  EXPECT_EQ(c.shown(id), "SUSPENDED None");
  c.now += 100;
  c.state.tick(c.now);
  ASSERT_TRUE(c.state.resume(id, kAlice, c.now));
  EXPECT_EQ(c.shown(id), "RUNNING None");
  EXPECT_EQ(c.state.next_deadline(), kStart + 60 + 100);
}

TEST(Life, CancelledRightAfterAResumeItIsKilledOutright) {
  Controller c;
  for (const Time later : {0, 60}) {
    const JobId id = c.started("--mem=1G");
    ASSERT_TRUE(c.state.suspend(id, kAlice, c.now));
    ASSERT_TRUE(c.state.resume(id, kAlice, c.now));
    c.now += later;
    c.state.take_effects();
    ASSERT_TRUE(c.state.cancel(id, {kAlice, {}, false, false, false}, c.now));
    EXPECT_EQ(c.at(id).end_cause, later == 0 ? "" : "SIGNAL");
    c.gone(id);
  }
}

TEST(Life, TooManyNodesIsOfThePartitionFirstAndOfItsLimitLater) {
  Controller c;
  const JobId id = c.submit("-N9 --mem=1G");
  c.state.set_reason(id, "PartitionNodeLimit", "", c.now);
  EXPECT_EQ(c.shown(id), "PENDING PartitionConfig");
  EXPECT_EQ(c.state.next_deadline(), kStart + kFirstPass);
  c.now += kFirstPass;
  c.state.tick(c.now);
  c.state.set_reason(id, "PartitionNodeLimit", "", c.now);
  EXPECT_EQ(c.shown(id), "PENDING PartitionNodeLimit");
  EXPECT_EQ(c.state.next_deadline(), std::nullopt);
}

TEST(Life, WhatIsKnownToBeInVainIsRefused) {
  Controller c;
  const auto words = [&](const std::string& line) -> std::string {
    const auto made = c.state.submit(submission(line), 1, kAlice, c.now);
    return made ? "" : std::string(made.error().what());
  };
  EXPECT_THAT(words("--reservation=foo"), ::testing::EndsWith("Requested reservation is invalid"));
  EXPECT_THAT(words("--deadline=1970-01-02 --mem=1G"),
              ::testing::HasSubstr("time limit is invalid"));
  EXPECT_THAT(words("--time-min=10 -t 5 --mem=1G"), ::testing::HasSubstr("time limit is invalid"));
  EXPECT_EQ(words("--time-min=5 -t 10 --mem=1G"), "");
}

TEST(Life, BeginTimeAndDeadline) {
  Controller c;
  const JobId later = c.submit("--mem=1G --begin=now+10minutes");
  EXPECT_EQ(c.shown(later), "PENDING BeginTime");
  EXPECT_EQ(c.state.next_deadline(), kStart + 600);
  c.now += 600;
  c.state.tick(c.now);
  EXPECT_TRUE(c.start(later));
  const JobId late = c.submit("-H --mem=1G -t 5 --deadline=now+10minutes");
  c.now += 600;
  c.state.tick(c.now);
  EXPECT_EQ(c.shown(late), "DEADLINE DeadLine");
}

TEST(Life, AnInteractiveJobIsGrantedWhenAllNodesAreReadyAndEndsWithItsOwner) {
  Controller c;
  const JobId id = c.submit("-N2 --mem=1G", "salloc");
  ASSERT_TRUE(c.start(id));
  EXPECT_TRUE(c.effects<GrantJob>().empty());
  c.begun(id);
  EXPECT_EQ(c.effects<GrantJob>().size(), 1U);
  const wire::JobGrant grant = job_grant(c.state, c.at(id), {});
  EXPECT_TRUE(grant.ready());
  EXPECT_EQ(grant.components(0).node_names_size(), 2);
  ASSERT_TRUE(c.state.finish_job(id, kAlice, 2 << 8, c.now));
  EXPECT_EQ(c.shown(id), "FAILED+COMPLETING NonZeroExitCode");
  const JobId lost = c.submit("--mem=1G", "srun");
  c.state.owner_gone(lost, c.now);
  EXPECT_EQ(c.shown(lost), "CANCELLED None");
}

TEST(Life, EqualSubmissionsShareWhatTheyAskFor) {
  Controller c;
  const JobId a = c.submit("--mem=1G -n2");
  const JobId b = c.submit("--mem=1G -n2");
  const JobId other = c.submit("--mem=1G -n3");
  EXPECT_EQ(c.at(a).what, c.at(b).what);
  EXPECT_NE(c.at(a).what, c.at(other).what);
  EXPECT_NE(c.at(a).what->shape, c.at(other).what->shape);
}

TEST(Life, UpdatedWordsAreReadAgain) {
  Controller c;
  const JobId id = c.submit("-H --mem=1G -n2");
  ASSERT_TRUE(
      c.state.update_words(id, {"--ntasks=4", "--partition=ml"}, c.blobs[0], kAlice, c.now));
  EXPECT_EQ(c.at(id).what->request.ntasks, 4U);
  EXPECT_EQ(c.at(id).partition, "ml");
  EXPECT_FALSE(c.state.update_words(id, {"--gpus=99"}, c.blobs[0], kAlice, c.now));
  EXPECT_EQ(c.at(id).what->request.ntasks, 4U);
}

/// As a node says that it cannot start what it is given.
void refuse_as_unfit(Controller& c, JobId id, const std::string& node) {
  wire::JobBegun message;
  message.set_node(node);
  message.set_job_id(id);
  message.set_attempt(c.at(id).attempt);
  *message.mutable_refusal() = wire::to_refusal(
      fail(Code::node_unfit, "launch failed twice: /spool: No space left on device").error());
  c.state.job_begun(message, c.now);
}

TEST(LaunchFailures, OfTheNodeDrainItAndTheJobBeginsAgainAtOnce) {
  for (const char* options : {"--requeue", "--no-requeue"}) {
    Controller c;
    const JobId id = c.submit(std::string(options) + " -w gpu1 --mem=1G");
    ASSERT_TRUE(c.start(id));
    refuse_as_unfit(c, id, "gpu1");
    EXPECT_TRUE(c.state.find_node("gpu1")->drain);
    EXPECT_EQ(c.state.find_node("gpu1")->reason,
              "launch failed twice: /spool: No space left on device");
    EXPECT_EQ(c.effects<EndJob>().size(), 1U);
    c.gone(id);
    EXPECT_EQ(c.at(id).base, Base::pending) << options;
    EXPECT_FALSE(c.at(id).held);
    EXPECT_EQ(c.at(id).restarts, 1U);
    EXPECT_EQ(c.at(id).failed_node, "gpu1");
    std::string reason;
    EXPECT_TRUE(c.state.eligible(c.at(id), c.now, reason)) << reason;
    EXPECT_TRUE(c.idle());
  }
}

TEST(LaunchFailures, ToldAsTheEndOfTheScriptAreTheSame) {
  Controller c;
  const JobId id = c.started("--no-requeue -w gpu1 --mem=1G");
  wire::StepEnded ended;
  ended.set_node("gpu1");
  ended.set_job_id(id);
  ended.set_attempt(1);
  ended.set_step_id(wire::kBatchStep);
  ended.set_system_failure(true);
  ended.set_node_unfit(true);
  ended.set_trouble("launch failed twice: fork: Resource temporarily unavailable");
  c.state.step_ended(ended, c.now);
  EXPECT_EQ(c.state.find_node("gpu1")->reason, ended.trouble());
  c.gone(id);
  EXPECT_EQ(c.at(id).base, Base::pending);
  EXPECT_EQ(c.at(id).restarts, 1U);
  EXPECT_EQ(c.at(id).exit_status, 0);
}

TEST(LaunchFailures, AreBoundedByMaxBatchRequeue) {
  Policy policy;
  policy.max_batch_requeue = 2;
  Controller c(policy);
  const JobId id = c.submit("-w gpu1 --mem=1G");
  NodeChange resume;
  resume.state = "RESUME";
  resume.caller = kRoot;
  for (int count = 0; count < 3; ++count) {
    ASSERT_TRUE(c.start(id)) << count;
    refuse_as_unfit(c, id, "gpu1");
    c.gone(id);
    ASSERT_TRUE(c.state.change_node("gpu1", resume, c.now));
  }
  EXPECT_EQ(c.shown(id).substr(0, 7), "PENDING");
  EXPECT_EQ(c.at(id).reason, "JobHoldMaxRequeue");
  EXPECT_TRUE(c.at(id).held);
  EXPECT_FALSE(c.start(id));
}

/// The script runs on the first node: it may have begun when another one fails.
TEST(LaunchFailures, OfAnotherNodeThanTheScriptsAreFailuresOfThatNode) {
  for (const bool again : {true, false}) {
    Controller c;
    const JobId id =
        c.submit(std::string(again ? "--requeue" : "--no-requeue") + " -N2 -w gpu[1-2] --mem=1G");
    ASSERT_TRUE(c.start(id));
    ASSERT_EQ(c.at(id).nodes.front(), "gpu1");
    refuse_as_unfit(c, id, "gpu2");
    EXPECT_TRUE(c.state.find_node("gpu2")->drain);
    EXPECT_FALSE(c.state.find_node("gpu1")->drain);
    c.gone(id);
    EXPECT_EQ(c.at(id).base, again ? Base::pending : Base::node_fail);
  }
}

TEST(LaunchFailures, OfAnInteractiveJobEndItAsBefore) {
  Controller c;
  const JobId id = c.submit("-w gpu1 --mem=1G", "salloc");
  ASSERT_TRUE(c.start(id));
  refuse_as_unfit(c, id, "gpu1");
  c.gone(id);
  EXPECT_EQ(c.at(id).base, Base::failed);
  EXPECT_EQ(c.at(id).reason, "JobLaunchFailure");
  EXPECT_TRUE(c.state.find_node("gpu1")->drain);
}

TEST(LaunchFailures, TakeAllComponentsBackIntoTheQueue) {
  Controller c;
  const JobId id = c.submit("--no-requeue -w gpu1 --mem=1G : -w gpu2 --mem=1G");
  ASSERT_TRUE(c.start(id));
  refuse_as_unfit(c, id, "gpu1");
  for (const JobId part : c.state.records_of(id)) c.gone(part);
  for (const JobId part : c.state.records_of(id)) EXPECT_EQ(c.at(part).base, Base::pending);
  EXPECT_TRUE(c.idle());
}

}  // namespace
}  // namespace berth::job::testing
