// The controller asks what a step uses on a node.
#include <gtest/gtest.h>

#include "node/agent_test_fixture.h"

namespace berth::node {
namespace {

class MeasureTest : public AgentTest {
 protected:
  void ask_use(std::uint64_t number, std::uint32_t step, bool with_pids) {
    wire::MeasureOnNodes ask;
    ask.set_number(number);
    ask.set_job_id(7);
    ask.set_attempt(1);
    ask.set_step_id(step);
    ask.add_nodes("n0");
    ask.set_with_pids(with_pids);
    tell(ask);
  }
  void start_step() {
    tell(begin_job());
    ASSERT_TRUE(until([&] { return begun_.has_value(); }));
    const auto reply = launch(auth::sign_ticket("n0", spec(0), kKey), "read line");
    ASSERT_FALSE(reply.has_refusal());
  }
};

TEST_F(MeasureTest, EveryQuestionIsAnswered) {
  start_step();
  ask_use(1, 0, false);
  ask_use(2, 0, true);
  ask_use(3, 5, true);  // no such step
  ASSERT_TRUE(until([&] { return measured_.size() == 3; }));
  std::map<std::uint64_t, wire::MeasuredOnNode> answers;
  for (const wire::MeasuredOnNode& answer : measured_) answers[answer.number()] = answer;
  EXPECT_EQ(answers[1].node(), "n0");
  EXPECT_EQ(answers[1].figures().memory().tasks(), 1U);
  EXPECT_GT(answers[1].figures().memory().most(), 0U);
  EXPECT_EQ(answers[1].pids_size(), 0);
  EXPECT_EQ(answers[2].pids_size(), 1);
  EXPECT_FALSE(answers[3].has_figures());
}

TEST_F(MeasureTest, AStepThatEndsAnswersToo) {
  start_step();
  // What is on its way when the supervisor dies comes back without figures.
  ASSERT_TRUE(until([&] { return !started_.empty(); }));
  end_job(true);
  ask_use(4, 0, false);
  ASSERT_TRUE(until([&] { return !measured_.empty(); }));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  ask_use(5, 0, false);
  ASSERT_TRUE(until([&] { return measured_.size() == 2; }));
  EXPECT_EQ(measured_[1].number(), 5U);
  EXPECT_TRUE(ended_[0].usage().figures().has_cpu());
  EXPECT_EQ(measured_[1].figures().SerializeAsString(),
            ended_[0].usage().figures().SerializeAsString())
      << "until the controller has noted the end";
  EXPECT_FALSE(measured_[1].unable());
}

TEST_F(MeasureTest, ThereIsAnEndOfWhatASupervisorIsAsked) {
  start_step();
  ASSERT_TRUE(until([&] { return !started_.empty(); }));
  for (std::uint64_t number = 1; number <= 100; ++number) ask_use(number, 0, false);
  ASSERT_TRUE(until([&] { return measured_.size() == 100; }));
  for (const wire::MeasuredOnNode& answer : measured_) {
    EXPECT_NE(answer.has_figures(), answer.unable()) << answer.number();
  }
}

}  // namespace
}  // namespace berth::node
