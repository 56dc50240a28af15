// What a job has waited for.
#include "job/wait_log.h"

#include "job/state_test_fixture.h"

namespace berth::job {
namespace {

using testing::Controller;
using testing::kAlice;

TEST(WaitLog, KeepsReasonsInOrderWithTheirTimes) {
  WaitLog log;
  EXPECT_EQ(log.text(1000), "");
  log.waits_for("None", 1000);
  log.waits_for("Priority", 1000);
  log.waits_for("Priority", 1300);
  log.waits_for("Resources", 1600);
  EXPECT_EQ(log.text(1600), "Priority:00:10:00");
  EXPECT_EQ(log.text(1900), "Priority:00:10:00,Resources:00:05:00");
  log.waits_for("ReqNodeNotAvail, UnavailableNodes:n[1-2]", 1900);
  log.close(1900 + 86400 + 61);
  EXPECT_EQ(log.text(9999999), "Priority:00:10:00,Resources:00:05:00,ReqNodeNotAvail:1-00:01:01");
}

TEST(WaitLog, EqualOnesThatFollowEachOtherAreOne) {
  WaitLog log;
  log.waits_for("Priority", 10);
  log.waits_for("Resources", 20);  // for no time at all
  log.waits_for("Priority", 20);
  log.close(30);
  EXPECT_EQ(log.text(30), "Priority:00:00:20");
}

TEST(WaitLog, IsBounded) {
  WaitLog log;
  for (int i = 0; i < 100; ++i) log.waits_for(i % 2 == 0 ? "Priority" : "Resources", 1000 + i);
  log.close(1100);
  const std::string text = log.text(1100);
  EXPECT_EQ(std::ranges::count(text, ','), static_cast<std::ptrdiff_t>(WaitLog::kMost));
  EXPECT_TRUE(text.ends_with(",+84")) << text;
  EXPECT_TRUE(text.starts_with("Priority:00:00:43,Resources:00:00:43,")) << text;  // 1 + 42 later
}

TEST(WaitLog, GoesThroughTheStore) {
  WaitLog log;
  log.waits_for("Priority", 1000);
  log.waits_for("Licenses", 1010);
  log.waits_for("a word nobody knows", 1020);
  wire::JobRecord record;
  log.store(record);
  EXPECT_EQ(WaitLog::from(record).text(1030), "Priority:00:00:10,Licenses:00:00:10,Other:00:00:10");
  WaitLog copy = log;
  copy.close(1030);
  EXPECT_EQ(copy.text(1030), WaitLog::from(record).text(1030));
}

TEST(WaitLog, OfAJob) {
  Controller c;
  const JobId id = c.submit("-n1");
  c.state.set_reason(id, "Resources", "", c.now);
  c.now += 60;
  ASSERT_TRUE(c.state.hold(id, kAlice, false, c.now));
  c.now += 30;
  ASSERT_TRUE(c.state.release(id, kAlice, c.now));
  c.state.set_reason(id, "Priority", "", c.now);
  c.now += 5;
  ASSERT_TRUE(c.start(id));
  c.now += 1000;
  EXPECT_EQ(c.at(id).waits.text(c.now),
            "Resources:00:01:00,JobHeldUser:00:00:30,Priority:00:00:05");
  // The record that is stored with the start has it.
  const auto dirty = c.state.take_dirty();
  ASSERT_FALSE(dirty.jobs.empty());
  EXPECT_EQ(WaitLog::from(dirty.jobs.back()).text(c.now), c.at(id).waits.text(c.now));
}

}  // namespace
}  // namespace berth::job
