// Launches that fail by the node's fault: tried once more, then told as such.
#include <gmock/gmock.h>

#include "node/agent_test_fixture.h"
#include "step/launch_failure.h"

namespace berth::node {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string why(const wire::Refusal& refusal) {
  return refusal.lines_size() > 0 ? refusal.lines(0).text() : "";
}

class LaunchFailureTest : public AgentTest {
 protected:
  void supervisor(const std::string& script) {
    ASSERT_TRUE(step::write_file(directory_ + "/stepd", "#!/bin/sh\n" + script + '\n', 0755));
  }
  /// Dies with its first call, and is a supervisor from then on.
  void supervisor_dies_once() {
    const std::string real = file("stepd");
    supervisor("[ -e " + directory_ + "/died ] || { touch " + directory_ + "/died; exit 1; }\n" +
               real);
  }
  /// There is no record in it, and there can be none.
  void block_spool() { ASSERT_TRUE(step::write_file(directory_ + "/spool/n0", "")); }
  void unblock_spool() { std::filesystem::remove(directory_ + "/spool/n0"); }
};

TEST_F(LaunchFailureTest, AJobThatCannotBeRecordedIsRefusedAsUnfit) {
  block_spool();
  const auto began = net::Clock::now();
  tell(begin_batch("touch ran"));
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  EXPECT_GE(net::Clock::now() - began, step::kTryAgainAfter);
  EXPECT_EQ(begun_->refusal().code(), "node_unfit");
  EXPECT_EQ(why(begun_->refusal()),
            "launch failed twice: " + directory_ + "/spool/n0/job.7.1: Not a directory");
  end_job();
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/ran"));
  unblock_spool();
}

TEST_F(LaunchFailureTest, ASecondTryThatWorksIsAsIfNothingHadBeen) {
  block_spool();
  tell(begin_batch("echo ran >> ran"));
  loop_.after(std::chrono::milliseconds(300), [&] { unblock_spool(); });
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_FALSE(begun_->has_refusal());
  EXPECT_EQ(file("ran"), "ran\n");
}

TEST_F(LaunchFailureTest, AMissingSupervisorMakesTheNodeUnfit) {
  std::filesystem::remove(directory_ + "/stepd");
  tell(begin_batch("touch ran"));
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  EXPECT_EQ(begun_->refusal().code(), "node_unfit");
  EXPECT_EQ(why(begun_->refusal()),
            "launch failed twice: " + directory_ + "/stepd: No such file or directory");
  EXPECT_TRUE(trouble_.empty());  // the refusal says it
}

TEST_F(LaunchFailureTest, AStepOfSrunIsRefusedAndTheNodeTellsOfIt) {
  tell(begin_job());
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  std::filesystem::remove(directory_ + "/stepd");
  const wire::LaunchReply reply = launch(auth::sign_ticket("n0", spec(0), kKey), "touch ran");
  EXPECT_EQ(reply.refusal().code(), "node_unfit");
  EXPECT_THAT(why(reply.refusal()), StartsWith("launch failed twice: "));
  ASSERT_TRUE(until([&] { return !trouble_.empty(); }));
  EXPECT_EQ(trouble_[0].node(), "n0");
  EXPECT_EQ(trouble_[0].reason(), why(reply.refusal()));
}

TEST_F(LaunchFailureTest, ASupervisorThatDiesOnceBeforeTheScriptIsStartedAgain) {
  supervisor_dies_once();
  tell(begin_batch("echo ran >> ran; exit 3"));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_EQ(file("ran"), "ran\n");
  ASSERT_EQ(ended_[0].statuses_size(), 1);
  EXPECT_EQ(WEXITSTATUS(ended_[0].statuses(0)), 3);
  ASSERT_TRUE(begun_.has_value());
  EXPECT_FALSE(begun_->has_refusal());
}

TEST_F(LaunchFailureTest, ASupervisorThatDiesTwiceBeforeTheScript) {
  supervisor("exit 1");
  tell(begin_batch("touch ran"));
  // Whether it died before or after it got its order.
  const auto unfit = [&] {
    return (begun_ && begun_->refusal().code() == "node_unfit") ||
           (!ended_.empty() && ended_[0].node_unfit());
  };
  ASSERT_TRUE(until(unfit));
  const std::string text = ended_.empty() ? why(begun_->refusal()) : ended_[0].trouble();
  EXPECT_EQ(text, "launch failed twice: berth-stepd ended before it started anything");
}

TEST_F(LaunchFailureTest, ASupervisorThatDiesWithItsOrderHasStartedNothing) {
  supervisor("read -r word <&3; exit 1");  // it ends when the order has come
  tell(begin_batch("touch ran"));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  ASSERT_TRUE(begun_.has_value());
  EXPECT_FALSE(begun_->has_refusal());
  EXPECT_TRUE(ended_[0].node_unfit());
  EXPECT_EQ(ended_[0].trouble(),
            "launch failed twice: berth-stepd ended before it started anything");
  EXPECT_EQ(started_.size(), 2U);
  // As any end: told until it is confirmed.
  ended_.clear();
  agent_link_->abort();
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_TRUE(ended_[0].node_unfit());
}

TEST_F(LaunchFailureTest, ASupervisorOfSrunThatDiesIsTriedWhenSrunDialsAgain) {
  tell(begin_job());
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  supervisor("exit 1");
  const wire::Ticket ticket = auth::sign_ticket("n0", spec(0), kKey);
  // The connection breaks each time: srun dials again, with the same ticket.
  for (int call = 0; call < 2; ++call) EXPECT_FALSE(launch(ticket, "touch ran").has_refusal());
  ASSERT_TRUE(until([&] { return !trouble_.empty(); }));
  const wire::LaunchReply reply = launch(ticket, "touch ran");
  EXPECT_EQ(reply.refusal().code(), "node_unfit");
  EXPECT_EQ(why(reply.refusal()), trouble_[0].reason());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/ran"));
}

TEST_F(LaunchFailureTest, AJobThatEndsMeanwhileIsNotTriedAgain) {
  supervisor("echo called >> " + directory_ + "/calls; exit 1");
  tell(begin_batch("touch ran"));
  ASSERT_TRUE(until([&] { return file("calls") == "called\n"; }));
  const auto began = net::Clock::now();
  end_job(true);
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  const auto took = net::Clock::now() - began;
  for (const wire::StepEnded& ended : ended_) EXPECT_FALSE(ended.node_unfit());
  EXPECT_TRUE(trouble_.empty());
  // A second call would have come by then.
  if (took < step::kTryAgainAfter) {
    EXPECT_EQ(file("calls"), "called\n");
  }
}

TEST_F(LaunchFailureTest, TroubleWaitsForTheController) {
  tell(begin_job());
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  std::filesystem::remove(directory_ + "/stepd");
  controller_.reset();
  agent_link_->abort();
  std::filesystem::remove(net::controller_socket(directory_ + "/run"));
  const wire::LaunchReply reply = launch(auth::sign_ticket("n0", spec(0), kKey), "true");
  EXPECT_EQ(reply.refusal().code(), "node_unfit");
  EXPECT_TRUE(trouble_.empty());
  open_controller();
  ASSERT_TRUE(until([&] { return !trouble_.empty(); }));
  EXPECT_THAT(trouble_[0].reason(), HasSubstr("No such file"));
}

TEST_F(LaunchFailureTest, WhatTheUserChoosesIsNotTheNodesFault) {
  tell(begin_job());
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  wire::Launch message;
  *message.mutable_ticket() = auth::sign_ticket("n0", spec(0), kKey);
  wire::Program& p = *message.mutable_program() = program("true");
  p.mutable_stdout()->set_kind("file");
  p.mutable_stdout()->set_pattern("/dev/null/out");
  const wire::LaunchReply reply = ask(message);
  EXPECT_EQ(reply.refusal().code(), "io");
  EXPECT_THAT(why(reply.refusal()), HasSubstr("Could not open file"));
  EXPECT_TRUE(trouble_.empty());
}

TEST_F(LaunchFailureTest, AJobOfAnotherBootIsToldAsLost) {
  tell(begin_job());
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  agent_.reset();
  ASSERT_TRUE(step::write_file(directory_ + "/spool/begun.log", "begin another-boot n0 7 1 - .\n"));
  start_agent();
  ASSERT_EQ(registration_->nodes(0).jobs_size(), 1);
  EXPECT_TRUE(registration_->nodes(0).jobs(0).lost());
}

}  // namespace
}  // namespace berth::node
