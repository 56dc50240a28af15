// The main flows, over real sockets and a real store.
#include <chrono>
#include <csignal>
#include <thread>

#include "controller/service_test_fixture.h"

namespace berth::controller {
namespace {

TEST_F(ServiceTest, ABatchJobRunsAndEndsOnce) {
  FakeAgent agent(socket());
  agent.enroll();
  Talker client(socket());
  const auto reply = client.ask<wire::SubmitReply>(batch("t1"));
  ASSERT_TRUE(reply) << reply.error().what();
  const auto begin = agent.next<wire::BeginJob>();
  EXPECT_EQ(begin.job_id(), reply->job_id());
  EXPECT_EQ(begin.attempt(), 1U);
  EXPECT_EQ(begin.epoch(), agent.registered.epoch());
  ASSERT_TRUE(begin.has_batch());
  EXPECT_TRUE(auth::verify(begin.batch().ticket().spec(), begin.batch().ticket().mac(),
                           agent.keys[begin.node()]));
  EXPECT_EQ(begin.batch().program().script(), "#!/bin/sh\nhostname\n");
  EXPECT_EQ(job(reply->job_id()).state(), "RUNNING");

  agent.begun(begin);
  agent.ended(begin, wire::kBatchStep, 3 << 8);
  const auto end = agent.find<wire::EndJob>();
  EXPECT_THAT(job(reply->job_id()).flags(), testing::Contains("COMPLETING"));
  agent.gone(end);
  while (agent.find<wire::Forget>().has_step_id() && !HasFailure()) {
  }
  const wire::JobInfo info = job(reply->job_id());
  EXPECT_EQ(info.state(), "FAILED");
  EXPECT_EQ(info.exit_status(), 3 << 8);
  EXPECT_TRUE(info.flags().empty());
}

TEST_F(ServiceTest, WhatAStepUsesIsAskedOfItsAgent) {
  auto agent = std::make_unique<FakeAgent>(socket());
  agent->enroll();
  Talker client(socket());
  const auto reply = client.ask<wire::SubmitReply>(batch("t1"));
  ASSERT_TRUE(reply);
  const auto begin = agent->next<wire::BeginJob>();
  agent->begun(begin);
  wire::MeasureSteps ask;
  ask.add_steps()->set_id(reply->job_id());
  ask.mutable_steps(0)->set_step(wire::kBatchStep);
  client.send(ask);
  const auto question = agent->find<wire::MeasureOnNodes>();
  EXPECT_EQ(question.job_id(), reply->job_id());
  EXPECT_EQ(question.attempt(), 1U);
  EXPECT_EQ(question.step_id(), wire::kBatchStep);
  ASSERT_EQ(question.nodes_size(), 1);
  EXPECT_EQ(question.nodes(0), begin.node());
  wire::MeasuredOnNode answer;
  answer.set_number(question.number());
  answer.set_node(begin.node());
  answer.mutable_figures()->mutable_memory()->set_tasks(1);
  answer.mutable_figures()->mutable_memory()->set_most(77);
  agent->send(answer);
  const auto told = client.next<wire::StepsMeasured>();
  ASSERT_EQ(told.asked_size(), 1);
  ASSERT_EQ(told.asked(0).steps_size(), 1);
  EXPECT_EQ(told.asked(0).steps(0).figures().memory().most(), 77U);
  EXPECT_EQ(told.asked(0).steps(0).missing_size(), 0);
  // An agent that goes away is not waited for.
  client.send(ask);
  agent->find<wire::MeasureOnNodes>();
  agent.reset();
  EXPECT_EQ(client.next<wire::StepsMeasured>().asked(0).steps(0).missing(0), begin.node());
}

TEST_F(ServiceTest, ARetryGivesTheSameJob) {
  Talker client(socket());
  const auto first = client.ask<wire::SubmitReply>(batch("same"));
  const auto second = client.ask<wire::SubmitReply>(batch("same"));
  const auto other = client.ask<wire::SubmitReply>(batch("other"));
  ASSERT_TRUE(first && second && other);
  EXPECT_EQ(first->job_id(), second->job_id());
  EXPECT_NE(first->job_id(), other->job_id());
}

TEST_F(ServiceTest, AcceptedJobsSurviveARestartAndStartOnce) {
  std::uint32_t id = 0;
  {
    Talker client(socket());
    const auto reply = client.ask<wire::SubmitReply>(batch("t1"));
    ASSERT_TRUE(reply);
    id = reply->job_id();
  }
  stop();
  start();
  {
    Talker client(socket());
    const auto again = client.ask<wire::SubmitReply>(batch("t1"));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->job_id(), id);
  }
  wire::BeginJob begin;
  {
    FakeAgent agent(socket());
    agent.enroll();
    EXPECT_EQ(agent.registered.epoch(), 2U);
    begin = agent.next<wire::BeginJob>();
    EXPECT_EQ(begin.job_id(), id);
  }
  stop();
  start();
  // The node knows the attempt: the job goes on, and its end is taken.
  FakeAgent agent(socket());
  wire::RegisterNodes report = agent.report();
  for (auto& node : *report.mutable_nodes()) {
    if (node.name() != begin.node()) continue;
    wire::HeldJob& held = *node.add_jobs();
    held.set_job_id(id);
    held.set_attempt(begin.attempt());
    node.add_steps()->set_spec(begin.batch().ticket().spec());
  }
  agent.enroll(report);
  EXPECT_EQ(job(id).state(), "RUNNING");
  agent.ended(begin, wire::kBatchStep, 0);
  agent.gone(agent.find<wire::EndJob>());
  while (agent.find<wire::Forget>().has_step_id() && !HasFailure()) {
  }
  EXPECT_EQ(job(id).state(), "COMPLETED");
}

TEST_F(ServiceTest, ANodeThatNeverHeardOfTheStartHearsItAgain) {
  std::uint32_t id = 0;
  {
    FakeAgent agent(socket());
    agent.enroll();
    Talker client(socket());
    id = client.ask<wire::SubmitReply>(batch("t1"))->job_id();
    EXPECT_EQ(agent.next<wire::BeginJob>().job_id(), id);
  }
  FakeAgent agent(socket());
  agent.enroll();
  const auto begin = agent.next<wire::BeginJob>();
  EXPECT_EQ(begin.job_id(), id);
  EXPECT_EQ(begin.attempt(), 1U);
}

TEST_F(ServiceTest, AnSrunGetsItsJobAndItsStep) {
  FakeAgent agent(socket());
  agent.enroll();
  Talker srun(socket());
  srun.send(interactive("t1", {"-N2", "-n2"}));
  const auto submitted = srun.next<wire::SubmitReply>();
  ASSERT_FALSE(submitted.has_refusal());
  const auto one = agent.next<wire::BeginJob>();
  const auto two = agent.next<wire::BeginJob>();
  EXPECT_FALSE(one.has_batch());
  agent.begun(one);
  agent.begun(two);
  const auto grant = srun.next<wire::JobGrant>();
  EXPECT_TRUE(grant.ready());
  ASSERT_EQ(grant.components_size(), 1);
  EXPECT_EQ(grant.components(0).node_names_size(), 2);

  wire::CreateStep ask;
  ask.set_job_id(submitted.job_id());
  ask.set_own_job(true);
  *ask.mutable_asked() = interactive("", {"-N2", "-n2"}).asked();
  srun.send(ask);
  const auto step = srun.next<wire::StepGrant>();
  ASSERT_FALSE(step.has_refusal());
  EXPECT_EQ(step.step_id(), 0U);
  EXPECT_EQ(step.ntasks(), 2U);
  ASSERT_EQ(step.tickets_size(), 2);
  for (int i = 0; i < 2; ++i) {
    const wire::Ticket& ticket = step.tickets(i);
    EXPECT_TRUE(auth::verify(ticket.spec(), ticket.mac(), agent.keys[ticket.node()]));
    const auto spec = wire::decode<wire::StepSpec>(ticket.spec());
    ASSERT_TRUE(spec);
    EXPECT_EQ(spec->node(), ticket.node());
    EXPECT_FALSE(spec->nonce().empty());
    EXPECT_EQ(spec->uid(), ::geteuid());
    EXPECT_EQ(step.addresses(i).unix_path(), "/nowhere/node.sock");
  }
  wire::FinishJob finish;
  finish.set_job_id(submitted.job_id());
  srun.send(finish);
  agent.find<wire::EndJob>();
  agent.find<wire::EndJob>();
}

TEST_F(ServiceTest, AnSrunThatSubmitsAgainIsToldWhatItMissed) {
  FakeAgent agent(socket());
  agent.enroll();
  Talker lost(socket());
  lost.send(interactive("t1", {}));
  const auto submitted = lost.next<wire::SubmitReply>();
  agent.begun(agent.next<wire::BeginJob>());
  lost.next<wire::JobGrant>();

  Talker again(socket());
  again.send(interactive("t1", {}));
  EXPECT_EQ(again.next<wire::SubmitReply>().job_id(), submitted.job_id());
  EXPECT_TRUE(again.next<wire::JobGrant>().ready());
  wire::FinishJob finish;
  finish.set_job_id(submitted.job_id());
  again.send(finish);
  const auto end = agent.find<wire::EndJob>();
  EXPECT_EQ(end.job_id(), submitted.job_id());

  Talker late(socket());
  late.send(interactive("t1", {}));
  EXPECT_EQ(late.next<wire::SubmitReply>().job_id(), submitted.job_id());
  EXPECT_EQ(late.next<wire::JobEnded>().job_id(), submitted.job_id());
}

TEST_F(ServiceTest, AJobWhoseOwnerWentAwayEnds) {
  FakeAgent agent(socket());
  std::uint32_t pending = 0;
  {
    Talker salloc(socket());
    salloc.send(interactive("t1", {}));
    pending = salloc.next<wire::SubmitReply>().job_id();
  }
  // One that waits is kept for a moment, then it is cancelled.
  for (int i = 0; i < 300 && job(pending).state() == "PENDING"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(job(pending).state(), "CANCELLED");
  agent.enroll();
  std::uint32_t running = 0;
  {
    Talker salloc(socket());
    salloc.send(interactive("t2", {}));
    running = salloc.next<wire::SubmitReply>().job_id();
    const auto begin = agent.next<wire::BeginJob>();
    EXPECT_EQ(begin.job_id(), running);
  }
  EXPECT_EQ(agent.find<wire::EndJob>().job_id(), running);
}

TEST_F(ServiceTest, AnAgentSpeaksForItsOwnNodesOnly) {
  FakeAgent agent(socket());
  agent.enroll();
  Talker client(socket());
  const auto reply = client.ask<wire::SubmitReply>(batch("t1"));
  ASSERT_TRUE(reply);
  const auto begin = agent.next<wire::BeginJob>();
  // Another agent that claims the node is refused, and what it says about it is not heard.
  FakeAgent other(socket());
  wire::RegisterNodes claim = other.report();
  claim.mutable_address()->set_unix_path("/elsewhere/node.sock");
  other.send(claim);
  const auto registered = other.next<wire::Registered>();
  ASSERT_EQ(registered.nodes_size(), 2);
  for (const auto& verdict : registered.nodes()) {
    EXPECT_TRUE(verdict.has_refusal());
    EXPECT_TRUE(verdict.key().empty());
  }
  other.ended(begin, wire::kBatchStep, 0);
  wire::Beat beat;
  beat.set_ask(true);
  other.send(beat);
  other.next<wire::Beat>();  // all before it was read
  EXPECT_EQ(job(reply->job_id()).state(), "RUNNING");
  EXPECT_THAT(job(reply->job_id()).flags(), testing::Not(testing::Contains("COMPLETING")));
}

TEST_F(ServiceTest, AControllerWithAnOldCopyOfItsStateIsNotObeyed) {
  FakeAgent agent(socket());
  wire::RegisterNodes report = agent.report();
  report.set_epoch(99);
  agent.send(report);
  const auto registered = agent.next<wire::Registered>();
  EXPECT_EQ(registered.nodes_size(), 2);
  for (const auto& verdict : registered.nodes()) {
    EXPECT_TRUE(verdict.has_refusal());
    EXPECT_TRUE(verdict.key().empty());
  }
}

TEST_F(ServiceTest, AnAgentThatKnowsAnotherStoreIsTurnedAway) {
  wire::StoreMemory told;
  {
    FakeAgent agent(socket());
    agent.enroll();
    told = agent.registered.memory();
    EXPECT_NE(told.store(), 0U);
    EXPECT_EQ(told.epoch(), 1U);
  }
  const auto verdict = [&](const wire::StoreMemory& memory) {
    FakeAgent agent(socket());
    wire::RegisterNodes report = agent.report();
    *report.mutable_memory() = memory;
    report.set_epoch(1);
    agent.send(report);
    const auto registered = agent.next<wire::Registered>();
    const auto& refusal = registered.nodes(0).refusal();
    EXPECT_EQ(refusal.lines_size() == 0, registered.has_memory())
        << "an agent learns nothing of it";
    return refusal.lines_size() == 0 ? std::string() : refusal.lines(0).text();
  };
  EXPECT_EQ(verdict(told), "");
  wire::StoreMemory other = told;
  other.set_store(told.store() + 1);
  EXPECT_THAT(verdict(other), testing::HasSubstr("belongs to another store"));
  other = told;
  other.set_commits(told.commits() + 1000);
  EXPECT_THAT(verdict(other), testing::HasSubstr("is an old copy"));
  other = told;
  other.set_mark(told.mark() + 1);
  EXPECT_THAT(verdict(other), testing::HasSubstr("is an old copy"));
}

TEST_F(ServiceTest, ASecondAgentOfANodeIsRefusedWhileTheFirstIsThere) {
  const auto report = [&](const FakeAgent& agent, const std::string& path, std::string instance) {
    wire::RegisterNodes message = agent.report();
    message.mutable_address()->set_unix_path(path);
    message.set_instance(std::move(instance));
    return message;
  };
  auto first = std::make_unique<FakeAgent>(socket());
  first->enroll(report(*first, "/first.sock", "a"));
  FakeAgent second(socket());
  second.send(report(second, "/second.sock", "b"));
  const auto refused = second.next<wire::Registered>();
  ASSERT_TRUE(refused.nodes(0).has_refusal());
  EXPECT_THAT(refused.nodes(0).refusal().lines(0).text(),
              testing::HasSubstr("served by another agent, at /first.sock"));
  EXPECT_TRUE(refused.nodes(0).key().empty());
  const auto told = first->next<wire::NodeClaimed>();
  EXPECT_EQ(told.node(), "n1");
  EXPECT_EQ(told.from(), "/second.sock");
  first->next<wire::NodeClaimed>();  // n2
  // The first one comes back before its connection is seen to be dead: it is the same agent.
  FakeAgent again(socket());
  again.enroll(report(again, "/first.sock", "a"));
  // It goes for good: the second one is to try again.
  first.reset();
  {
    FakeAgent last(socket());
    last.enroll(report(last, "/first.sock", "c"));
    wire::RegisterNodes none = report(last, "/first.sock", "c");
    none.clear_nodes();
    last.send(none);
    last.next<wire::Registered>();
  }
  wire::Beat beat;
  beat.set_ask(true);
  EXPECT_FALSE(second.ask<wire::Beat>(beat)) << "its connection is closed";
  FakeAgent third(socket());
  third.enroll(report(third, "/second.sock", "b"));
}

TEST_F(ServiceTest, ANewConfigurationReachesAgents) {
  FakeAgent agent(socket());
  agent.enroll();
  std::ofstream(directory_ + "/slurm.conf", std::ios::app) << "KillWait=7\n";
  Talker client(socket());
  ASSERT_TRUE(client.ask<wire::Done>(wire::Reconfigure()));
  EXPECT_EQ(agent.next<wire::Registered>().config().kill_wait_seconds(), 7U);
  // One that cannot be read changes nothing.
  std::ofstream(directory_ + "/slurm.conf", std::ios::app) << "NodeName=\n";
  EXPECT_FALSE(client.ask<wire::Done>(wire::Reconfigure()));
  EXPECT_TRUE(client.ask<wire::SubmitReply>(batch("t1")));
}

TEST_F(ServiceTest, AFullDiskRefusesNewWorkLosesNoneAndRecovers) {
  auto agent = std::make_unique<FakeAgent>(socket());
  agent->enroll();
  Talker client(socket());
  const auto running = client.ask<wire::SubmitReply>(batch("before"));
  ASSERT_TRUE(running);
  const auto begin = agent->next<wire::BeginJob>();
  agent->begun(begin);
  std::uint32_t refused_id = 0;
  {
    const FullDisk full;
    const auto refused = client.ask<wire::SubmitReply>(batch("during"));
    ASSERT_FALSE(refused);
    EXPECT_THAT(std::string(refused.error().what()), testing::HasSubstr("cannot write its state"));
    EXPECT_EQ(job(running->job_id()).state(), "RUNNING");
    Talker other(socket());
    EXPECT_FALSE(other.ask<wire::SubmitReply>(batch("during too")));
    // The agents are asked anew what runs; an end that comes now is not confirmed.
    agent = std::make_unique<FakeAgent>(socket());
    wire::RegisterNodes report = agent->report();
    for (auto& node : *report.mutable_nodes()) {
      if (node.name() != begin.node()) continue;
      wire::HeldJob& held = *node.add_jobs();
      held.set_job_id(begin.job_id());
      held.set_attempt(begin.attempt());
      node.add_steps()->set_spec(begin.batch().ticket().spec());
    }
    agent->enroll(report);
    agent->ended(begin, wire::kBatchStep, 0);
  }
  agent->gone(agent->find<wire::EndJob>());  // comes when it could be stored
  Result<wire::SubmitReply> accepted = client.ask<wire::SubmitReply>(batch("during"));
  ASSERT_TRUE(accepted) << accepted.error().what();
  refused_id = accepted->job_id();
  EXPECT_GT(refused_id, running->job_id());
  stop();
  start();
  EXPECT_EQ(job(running->job_id()).state(), "COMPLETED");
  job(refused_id);
}

TEST_F(ServiceTest, AnEndThatCannotBeStoredIsNotConfirmedUntilItIs) {
  FakeAgent agent(socket());
  agent.enroll();
  Talker client(socket());
  const auto submitted = client.ask<wire::SubmitReply>(batch("t1"));
  ASSERT_TRUE(submitted);
  const auto begin = agent.next<wire::BeginJob>();
  agent.begun(begin);
  job(submitted->job_id());  // the beginning is stored
  {
    const FullDisk full;
    agent.ended(begin, wire::kBatchStep, 0);
    wire::Beat beat;
    beat.set_ask(true);
    agent.send(beat);
    // Neither Forget nor EndJob before it.
    agent.next<wire::Beat>();
    EXPECT_FALSE(client.ask<wire::SubmitReply>(batch("t2")));
  }
  agent.gone(agent.find<wire::EndJob>());
  while (agent.find<wire::Forget>().has_step_id() && !HasFailure()) {
  }
  stop();
  start();
  EXPECT_EQ(job(submitted->job_id()).state(), "COMPLETED");
}

TEST_F(ServiceTest, OthersCannotTouchAJob) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  Talker mine(socket());
  const auto reply = mine.ask<wire::SubmitReply>(batch("t1", {"--hold"}));
  ASSERT_TRUE(reply);
  // Of this thread alone; the kernel notes who connects.
  ASSERT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);
  Talker stranger(socket());
  ASSERT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
  wire::GetScript script;
  script.set_job_id(reply->job_id());
  EXPECT_TRUE(mine.ask<wire::ScriptReply>(script));
  EXPECT_FALSE(stranger.ask<wire::ScriptReply>(script));
  wire::CancelJobs cancel;
  cancel.add_jobs()->set_id(reply->job_id());
  const auto results = stranger.ask<wire::Results>(cancel);
  ASSERT_TRUE(results);
  EXPECT_EQ(results->done(), 0U);
  EXPECT_FALSE(stranger.ask<wire::Done>(wire::Shutdown()));
  EXPECT_EQ(job(reply->job_id()).state(), "PENDING");
}

}  // namespace
}  // namespace berth::controller
