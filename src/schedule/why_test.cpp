#include "schedule/why.h"

#include <gtest/gtest.h>

#include "job/state_test_fixture.h"

namespace berth::schedule {
namespace {

using job::testing::Controller;
using job::testing::kStart;

std::string options(const Why& why) {
  std::string out;
  for (const Change& change : why.changes) out += change.option + " on " + change.nodes + "; ";
  return out;
}

TEST(Why, NamesWhoHoldsWhatAndWhatWouldStartIt) {
  Controller c;
  Scheduler scheduler;
  const JobId busy = c.submit("-w gpu1 --gpus=2 --mem=1G -n1 -t 60");
  scheduler.run(c.state, c.now);
  const JobId waits = c.submit("-w gpu1 --gpus=4 --mem=1G -n1 -t 30");
  scheduler.run(c.state, c.now);
  const Why why = scheduler.why(c.state, c.at(waits), c.now);
  EXPECT_EQ(why.reason, "Resources");
  EXPECT_EQ(why.position, 1U);
  EXPECT_EQ(why.waiting, 1U);
  EXPECT_EQ(why.planned_start, kStart + 3600);
  EXPECT_EQ(why.planned_nodes, "gpu1");
  ASSERT_EQ(why.holders.size(), 1U);
  EXPECT_EQ(why.holders[0].job, busy);
  EXPECT_EQ(why.holders[0].ends, kStart + 3600);
  EXPECT_EQ(why.holders[0].holds, "2 GPUs, 1 CPU on gpu1");
  EXPECT_EQ(options(why).find("--time"), std::string::npos) << "shorter does not help";
  EXPECT_NE(options(why).find("--gpus=2 on gpu1"), std::string::npos) << options(why);
  EXPECT_NE(options(why).find("no --nodelist on "), std::string::npos) << options(why);
}

TEST(Why, AShorterLimitSlipsInBeforeAPlan) {
  Controller c;
  Scheduler scheduler;
  c.submit("-w gpu1 --exclusive -t 60");
  scheduler.run(c.state, c.now);
  c.submit("-w gpu[1-2] --exclusive -N2 -t 60");
  const JobId waits = c.submit("-w gpu2 --exclusive -t 100");
  scheduler.run(c.state, c.now);
  const Why why = scheduler.why(c.state, c.at(waits), c.now);
  EXPECT_EQ(why.reason, "Priority");
  EXPECT_EQ(why.position, 2U);
  EXPECT_NE(options(why).find("--time=01:00:00 on gpu2"), std::string::npos) << options(why);
}

TEST(Why, ItsOwnPlanIsNotInItsWay) {
  Controller c;
  Scheduler scheduler;
  c.submit("-w gpu1 --gpus=2 --mem=1G -n1 -t 60");
  scheduler.run(c.state, c.now);
  const JobId waits = c.submit("-w gpu1 --gpus=4 --mem=1G -n1 -t 90");
  scheduler.run(c.state, c.now);
  const Why why = scheduler.why(c.state, c.at(waits), c.now);
  EXPECT_NE(options(why).find("--gpus=2 on gpu1"), std::string::npos) << options(why);
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.at(waits).planned_start, kStart + 3600) << "it keeps its place";
}

TEST(Foresee, SaysWhenAndWhereWithoutAnyTrace) {
  Controller c;
  Scheduler scheduler;
  c.submit("-w gpu1 --exclusive -t 60");
  const JobId waits = c.submit("-w gpu1 --exclusive -t 30");
  scheduler.run(c.state, c.now);
  const auto foreseen = [&](const std::string& words) {
    return scheduler.foresee(c.state, c.trial(words), c.now);
  };
  const Foreseen now = foreseen("-w gpu2 --gpus=1 --mem=1G -n1 -t 60");
  EXPECT_EQ(now.start, kStart);
  EXPECT_EQ(now.nodes, "gpu2");
  EXPECT_EQ(now.why.reason, "None");
  // Behind the one that waits for the same node.
  const Foreseen later = foreseen("-w gpu1 --gpus=1 --mem=1G -n1 -t 60");
  EXPECT_EQ(later.start, kStart + 3600 + 1800);
  EXPECT_EQ(later.why.reason, "Resources");
  EXPECT_EQ(later.why.position, 2U);
  EXPECT_EQ(later.why.waiting, 2U);
  EXPECT_NE(options(later.why).find("no --nodelist on "), std::string::npos);
  const Foreseen begins = foreseen("-w gpu2 -n1 --mem=1G -t 60 --begin=now+7200");
  EXPECT_EQ(begins.start, kStart + 7200);
  EXPECT_EQ(begins.why.reason, "BeginTime");
  EXPECT_EQ(c.state.queue().size(), 1U);
  scheduler.run(c.state, c.now);
  EXPECT_EQ(c.at(waits).planned_start, kStart + 3600) << "it keeps its place";
}

TEST(Why, ToldOutsideTheQueueToo) {
  Controller c;
  Scheduler scheduler;
  const JobId held = c.submit("-H -n1");
  const JobId never = c.submit("-n1 -d afterok:1");
  scheduler.run(c.state, c.now);
  EXPECT_EQ(scheduler.why(c.state, c.at(held), c.now).facts,
            std::vector<std::string>{"it is held: scontrol release 1"});
  const Why why = scheduler.why(c.state, c.at(never), c.now);
  EXPECT_EQ(why.position, 0U);
  ASSERT_EQ(why.facts.size(), 1U);
  EXPECT_EQ(why.facts[0], "it waits for other jobs: afterok:1(unfulfilled)");
}

}  // namespace
}  // namespace berth::schedule
