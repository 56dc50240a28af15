// Questions about steps, agents that answer, and agents that do not.
#include "controller/step_readings.h"

#include <gtest/gtest.h>

#include "controller/gauges.h"
#include "wire/step_figures.h"
#include "wire/step_ids.h"

namespace berth::controller {
namespace {

using Moment = StepReadings::Moment;
constexpr Peer kAsker = 1;
constexpr Peer kAgent = 10;
constexpr Peer kOther = 11;
const Moment kFirstMoment{};

StepReadings::Question question(Peer peer, std::vector<StepReadings::Node> nodes,
                                bool with_pids = false) {
  StepReadings::Question out;
  out.peer = peer;
  out.with_pids = with_pids;
  wire::StepInfo& step = *out.answer.add_asked()->add_steps()->mutable_step();
  step.set_job_id(7);
  step.set_step_id(0);
  out.steps.push_back({.attempt = 1, .nodes = std::move(nodes)});
  return out;
}

class Readings : public testing::Test {
 protected:
  /// What was sent since, by its receiver.
  template <class M>
  std::vector<std::pair<Peer, M>> sent() {
    std::vector<std::pair<Peer, M>> out;
    for (Front::Act& act : readings_.take_acts()) {
      wire::Frame frame;
      EXPECT_EQ(wire::scan_frame(act.bytes, wire::kMostBytes, frame), wire::Scan::complete);
      EXPECT_EQ(frame.kind, wire::KindOf<M>::value);
      EXPECT_EQ(act.answered, frame.kind == wire::Kind::StepsMeasured);
      out.emplace_back(act.peer, *wire::decode<M>(frame.payload));
    }
    return out;
  }
  void answers(Peer agent, std::uint64_t number, const std::string& node, std::uint32_t rank,
               std::uint64_t memory) {
    wire::MeasuredOnNode message;
    message.set_number(number);
    message.set_node(node);
    wire::note(*message.mutable_figures()->mutable_memory(), rank, memory);
    message.add_pids(100 + rank);
    readings_.answered(agent, message);
  }
  StepReadings readings_;
};

TEST_F(Readings, NodesArePutTogether) {
  ASSERT_TRUE(readings_.ask(
      question(kAsker, {{"n1", kAgent}, {"n2", kAgent}, {"n3", kOther}}, true), kFirstMoment));
  const auto asks = sent<wire::MeasureOnNodes>();
  ASSERT_EQ(asks.size(), 2U) << "one message for each agent";
  EXPECT_EQ(asks[0].second.nodes_size(), 2);
  EXPECT_TRUE(asks[0].second.with_pids());
  const std::uint64_t number = asks[0].second.number();
  answers(kOther, number, "n3", 2, 300);
  answers(kAgent, number, "n2", 1, 500);
  answers(kOther, number, "n1", 9, 900);       // does not serve it
  answers(kAgent, number + 99, "n1", 9, 900);  // nobody asked that
  answers(kAgent, number, "n2", 1, 900);       // twice
  EXPECT_TRUE(readings_.take_acts().empty()) << "n1 has not answered";
  answers(kAgent, number, "n1", 0, 100);
  const auto replies = sent<wire::StepsMeasured>();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].first, kAsker);
  const wire::MeasuredStep& step = replies[0].second.asked(0).steps(0);
  EXPECT_EQ(step.figures().memory().total(), 900U);
  EXPECT_EQ(step.figures().memory().most_node(), "n2");
  ASSERT_EQ(step.pids_size(), 3);
  EXPECT_EQ(step.pids(0).node(), "n1") << "in the order of the nodes";
  EXPECT_EQ(step.missing_size(), 0);
  EXPECT_EQ(readings_.next_deadline(), std::nullopt);
  EXPECT_EQ(readings_.awaited(), 0U);
}

TEST_F(Readings, WhoDoesNotAnswerIsNamed) {
  ASSERT_TRUE(readings_.ask(
      question(kAsker, {{"n1", kAgent}, {"n2", kOther}, {"n3", std::nullopt}, {"n4", 12}}),
      kFirstMoment));
  const std::uint64_t number = sent<wire::MeasureOnNodes>()[0].second.number();
  answers(kAgent, number, "n1", 0, 100);
  readings_.lost(12);
  EXPECT_EQ(readings_.awaited(), 1U);
  ASSERT_EQ(readings_.next_deadline(), kFirstMoment + StepReadings::kPatience);
  readings_.pass_time(kFirstMoment + StepReadings::kPatience - std::chrono::milliseconds(1));
  EXPECT_TRUE(readings_.take_acts().empty());
  readings_.pass_time(kFirstMoment + StepReadings::kPatience);
  const auto replies = sent<wire::StepsMeasured>();
  ASSERT_EQ(replies.size(), 1U);
  const wire::MeasuredStep& step = replies[0].second.asked(0).steps(0);
  EXPECT_EQ(std::vector<std::string>(step.missing().begin(), step.missing().end()),
            (std::vector<std::string>{"n2", "n3", "n4"}));
  EXPECT_EQ(step.figures().memory().total(), 100U) << "what is known is told";
  EXPECT_EQ(readings_.awaited(), 0U);
  answers(kOther, number, "n2", 1, 100);  // too late
  EXPECT_TRUE(readings_.take_acts().empty());
}

TEST_F(Readings, WhatEndedOnSomeNodesIsPartOfTheSum) {
  StepReadings::Question asked = question(kAsker, {{"n1", kAgent, true}, {"n2", kOther}});
  wire::StepFigures first;
  wire::note(*first.mutable_memory(), 0, 700);
  wire::add_figures(asked.steps[0].ended, first, "n1");
  ASSERT_TRUE(readings_.ask(std::move(asked), kFirstMoment));
  const auto asks = sent<wire::MeasureOnNodes>();
  ASSERT_EQ(asks.size(), 1U) << "n1 is not asked";
  EXPECT_EQ(asks[0].first, kOther);
  answers(kOther, asks[0].second.number(), "n2", 1, 300);
  const auto replies = sent<wire::StepsMeasured>();
  ASSERT_EQ(replies.size(), 1U);
  const wire::MeasuredStep& step = replies[0].second.asked(0).steps(0);
  EXPECT_EQ(step.figures().memory().total(), 1000U);
  EXPECT_EQ(step.figures().memory().most_node(), "n1");
  EXPECT_EQ(step.figures().memory().least_node(), "n2");
  EXPECT_EQ(step.missing_size(), 0);
}

TEST_F(Readings, WhoCannotAskItsSupervisorIsNamed) {
  ASSERT_TRUE(readings_.ask(question(kAsker, {{"n1", kAgent}, {"n2", kOther}}), kFirstMoment));
  const std::uint64_t number = sent<wire::MeasureOnNodes>()[0].second.number();
  answers(kAgent, number, "n1", 0, 100);
  wire::MeasuredOnNode unable;
  unable.set_number(number);
  unable.set_node("n2");
  unable.set_unable(true);
  readings_.answered(kOther, unable);
  const auto replies = sent<wire::StepsMeasured>();
  ASSERT_EQ(replies.size(), 1U);
  const wire::MeasuredStep& step = replies[0].second.asked(0).steps(0);
  ASSERT_EQ(step.missing_size(), 1);
  EXPECT_EQ(step.missing(0), "n2");
  EXPECT_EQ(step.figures().memory().total(), 100U);
}

TEST_F(Readings, ManyAskersCostTheNodesWhatOneDoes) {
  for (Peer asker = 1; asker <= 5; ++asker) {
    ASSERT_TRUE(readings_.ask(question(asker, {{"n1", kAgent}}), kFirstMoment));
  }
  const auto asks = sent<wire::MeasureOnNodes>();
  ASSERT_EQ(asks.size(), 1U);
  answers(kAgent, asks[0].second.number(), "n1", 0, 100);
  EXPECT_EQ(sent<wire::StepsMeasured>().size(), 5U);
  // The next one is a new reading.
  ASSERT_TRUE(readings_.ask(question(kAsker, {{"n1", kAgent}}), kFirstMoment));
  EXPECT_EQ(sent<wire::MeasureOnNodes>().size(), 1U);
}

TEST_F(Readings, WhatNeedsNobodyIsAnsweredAtOnce) {
  StepReadings::Question nothing;
  nothing.peer = kAsker;
  nothing.answer.add_asked()->set_fault("no job");
  nothing.answer.add_asked()->add_steps()->set_denied(true);
  ASSERT_TRUE(readings_.ask(std::move(nothing), kFirstMoment));
  EXPECT_EQ(sent<wire::StepsMeasured>().size(), 1U);
  ASSERT_TRUE(readings_.ask(question(kAsker, {{"n1", std::nullopt}}), kFirstMoment));
  EXPECT_EQ(sent<wire::StepsMeasured>()[0].second.asked(0).steps(0).missing(0), "n1");
}

TEST_F(Readings, ThereIsAnEndOfWhatIsAsked) {
  const std::vector<StepReadings::Node> all(StepReadings::kMostAsked + 1, {"n1", kAgent});
  EXPECT_FALSE(readings_.ask(question(kAsker, all), kFirstMoment));
  EXPECT_TRUE(readings_.take_acts().empty());
}

// ---- Which steps a name means

constexpr Caller kAlice{1001, 1001, false};
constexpr Caller kBob{1002, 1002, false};
constexpr Caller kRoot{0, 0, true};

Picture picture_of(std::initializer_list<std::uint32_t> steps) {
  Picture picture;
  auto job = std::make_shared<JobView>();
  job->id = job->array_id = 7;
  job->uid = 1001;
  job->attempt = 3;
  job->states = {"RUNNING"};
  for (const std::uint32_t id : steps) {
    wire::StepInfo step;
    step.set_job_id(7);
    step.set_step_id(id);
    step.set_nodes("n[1-2]");
    job->steps.push_back({std::make_shared<const std::string>(step.SerializeAsString()), 0});
  }
  picture.jobs[7] = job;
  picture.agents["n1"] = kAgent;
  return picture;
}

/// "0 1", "denied 0", or the fault.
std::string meant(const Picture& picture, const char* name, bool all, const Caller& caller) {
  wire::JobName asked;
  asked.set_id(name[0] == '7' ? 7 : 8);
  if (std::string_view(name).ends_with(".batch")) asked.set_step(wire::kBatchStep);
  if (std::string_view(name).ends_with(".1")) asked.set_step(1);
  StepReadings::Question out;
  add_steps(picture, asked, all, caller, out);
  const wire::AskedSteps& entry = out.answer.asked(0);
  if (!entry.fault().empty()) return entry.fault();
  if (entry.only_special()) return "only special";
  std::string text;
  for (const wire::MeasuredStep& step : entry.steps()) {
    if (!text.empty()) text += ' ';
    if (step.denied()) text += "denied ";
    const std::uint32_t id = step.step().step_id();
    text += id == wire::kBatchStep    ? "batch"
            : id == wire::kExternStep ? "extern"
                                      : std::to_string(id);
  }
  for (const StepReadings::Step& step : out.steps) {
    EXPECT_EQ(step.attempt, 3U);
    EXPECT_EQ(step.nodes.size(), 2U);
    EXPECT_EQ(step.nodes[0].agent, kAgent);
    EXPECT_EQ(step.nodes[1].agent, std::nullopt);
  }
  return text;
}

TEST(StepsAskedFor, WhichStepsANameMeans) {
  const Picture running = picture_of({2, 1, wire::kBatchStep, wire::kExternStep});
  const Picture script = picture_of({wire::kBatchStep});
  const Picture waits = picture_of({});
  const struct {
    const Picture& picture;
    const char* name;
    bool all;
    Caller caller;
    const char* meant;
  } rows[] = {
      {running, "7", false, kAlice, "1"},
      {running, "7", true, kAlice, "extern batch 1 2"},
      {running, "7.batch", false, kAlice, "batch"},
      {running, "7.batch", true, kAlice, "batch"},
      {running, "7.1", false, kRoot, "1"},
      {running, "7.1", false, kBob, "denied 1"},
      {running, "8", false, kAlice, "no job"},
      {running, "8.1", false, kAlice, "no job"},
      {script, "7", false, kAlice, "only special"},
      {script, "7", true, kAlice, "batch"},
      {script, "7.1", false, kAlice, "no step"},
      {waits, "7", false, kAlice, "no steps"},
      {waits, "7", true, kAlice, "no steps"},
      {waits, "7.batch", false, kAlice, "no step"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(meant(row.picture, row.name, row.all, row.caller), row.meant)
        << row.name << (row.all ? " -a" : "") << " by " << row.caller.uid;
  }
  Picture secret = picture_of({1});
  secret.disclosure.jobs = false;
  EXPECT_EQ(meant(secret, "7", false, kBob), "no job") << "PrivateData=jobs";
}

}  // namespace
}  // namespace berth::controller
