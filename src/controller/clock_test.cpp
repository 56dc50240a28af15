// A controller whose wall clock is set while jobs run and wait.
#include <atomic>

#include "base/cluster_clock.h"
#include "controller/service_test_fixture.h"

namespace berth::controller {
namespace {

constexpr std::int64_t kHour = 3600;

/// The machine's clocks, as tests set them.
class SetTime final : public TimeSource {
 public:
  std::atomic<std::int64_t> wall_ahead{0};
  std::atomic<std::int64_t> boot_ahead{0};
  std::atomic<std::uint64_t> number{1};

  [[nodiscard]] std::chrono::nanoseconds wall() const override {
    return machine_.wall() + std::chrono::seconds(wall_ahead + boot_ahead);
  }
  [[nodiscard]] BootTime boot() const override {
    return machine_.boot() + std::chrono::seconds(boot_ahead);
  }
  [[nodiscard]] std::uint64_t boot_number() const override { return number; }

 private:
  MachineTime machine_;
};

class ClockTest : public ServiceTest, public testing::WithParamInterface<std::int64_t> {
 protected:
  ClockTest() { time_ = &time; }
  void SetUp() override {
    ServiceTest::SetUp();
    agent = std::make_unique<FakeAgent>(socket());
    agent->enroll();
  }
  void TearDown() override {
    agent.reset();
    ServiceTest::TearDown();
  }
  std::uint32_t submit(std::vector<std::string> words) {
    Talker client(socket());
    const auto reply = client.ask<wire::SubmitReply>(batch(fmt::format("t{}", ++tokens), words));
    EXPECT_TRUE(reply && reply->job_id() > 0);
    return reply ? reply->job_id() : 0;
  }
  std::uint32_t run(std::vector<std::string> words) {
    const std::uint32_t id = submit(std::move(words));
    begin = agent->find<wire::BeginJob>();
    EXPECT_EQ(begin.job_id(), id);
    agent->begun(begin);
    return id;
  }
  /// As sdiag shows it.
  std::string figure(const std::string& name) {
    Talker client(socket());
    const auto reply = client.ask<wire::DiagnoseReply>(wire::Diagnose());
    if (reply) {
      for (const wire::Variable& one : reply->figures()) {
        if (one.name().contains(name)) return one.value();
      }
    }
    return "none";
  }
  void reconfigure() {
    Talker client(socket());
    const auto done = client.ask<wire::Done>(wire::Reconfigure());
    ASSERT_TRUE(done);
    ASSERT_FALSE(done->has_refusal());
  }
  /// squeue's now.
  std::int64_t now() {
    Talker client(socket());
    const auto reply = client.ask<wire::JobsReply>(wire::ListJobs());
    return reply ? reply->now() : 0;
  }
  static std::string time_of_day(std::int64_t at) {
    std::tm day{};
    ::localtime_r(&at, &day);
    char out[32];
    ::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%S", &day);
    return out;
  }
  std::string node_state(const std::string& name) {
    Talker client(socket());
    const auto reply = client.ask<wire::NodesReply>(wire::ListNodes());
    for (const wire::NodeInfo& node : reply->nodes()) {
      if (node.name() == name) {
        return fmt::format("{} {}", node.state(), fmt::join(node.flags(), ","));
      }
    }
    return "none";
  }

  SetTime time;
  std::unique_ptr<FakeAgent> agent;
  wire::BeginJob begin;
  int tokens = 0;
};
INSTANTIATE_TEST_SUITE_P(ByAnHour, ClockTest, testing::Values(kHour, -kHour),
                         [](const auto& by) { return by.param > 0 ? "Forward" : "Back"; });

TEST_P(ClockTest, WhatWasSetIsNotFollowedUntilItHasStoodForTenMinutes) {
  const std::int64_t by = GetParam();
  const std::uint32_t runs = run({"-t", "30", "--mem=1G"});
  const std::int64_t began = job(runs).start_time();
  const std::uint32_t waits = submit({"--mem=1G", "--begin=" + time_of_day(began + 1800)});
  const std::int64_t before = now();
  time.wall_ahead = by;
  EXPECT_EQ(figure("Wall clock ahead"), std::to_string(by));
  EXPECT_LT(now() - before, 60);
  EXPECT_EQ(job(runs).state(), "RUNNING");
  EXPECT_EQ(job(runs).start_time(), began);
  EXPECT_EQ(job(waits).reason(), "BeginTime");
  EXPECT_EQ(figure("Adopted:"), "0");
  EXPECT_EQ(node_state("n2"), "IDLE ");

  time.boot_ahead += 599;
  EXPECT_EQ(figure("Adopted:"), "0");
  time.boot_ahead += 60;
  EXPECT_EQ(figure("Adopted:"), "1");
  EXPECT_EQ(figure("Adopted in all"), std::to_string(by));
  EXPECT_EQ(figure("Wall clock ahead"), "0");
  const wire::JobInfo moved = job(runs);
  EXPECT_EQ(moved.state(), "RUNNING");
  EXPECT_EQ(moved.start_time(), began + by);
  EXPECT_EQ(moved.end_time(), began + by + 1800);
  EXPECT_NEAR(static_cast<double>(now() - moved.start_time()), 659, 30);
  // It asked for a time of day, which has come.
  EXPECT_EQ(job(waits).state(), by > 0 ? "RUNNING" : "PENDING");
  EXPECT_EQ(job(waits).eligible_time() == began + 1800, by < 0);
}

TEST_P(ClockTest, WhoReadsTheConfigurationAgainAdoptsItAtOnce) {
  const std::int64_t by = GetParam();
  const std::uint32_t runs = run({"-t", "30", "--mem=1G"});
  const std::int64_t began = job(runs).start_time();
  time.wall_ahead = by;
  reconfigure();
  EXPECT_EQ(job(runs).state(), "RUNNING");
  EXPECT_EQ(job(runs).start_time(), began + by);
  EXPECT_EQ(figure("Adopted:"), "1");
  reconfigure();
  EXPECT_EQ(figure("Adopted:"), "1");
}

TEST_P(ClockTest, WhatIsSetRightAgainChangesNothing) {
  const std::uint32_t runs = run({"-t", "30", "--mem=1G"});
  const std::int64_t began = job(runs).start_time();
  time.wall_ahead = GetParam();
  EXPECT_NE(figure("Wall clock ahead"), "0");
  time.wall_ahead = 2;
  EXPECT_EQ(figure("Wall clock ahead"), "0");
  time.boot_ahead += 700;
  EXPECT_EQ(figure("Adopted:"), "0");
  EXPECT_EQ(job(runs).start_time(), began);
}

TEST_P(ClockTest, AJobKeepsItsTimeOverARestart) {
  const std::int64_t by = GetParam();
  const std::uint32_t runs = run({"-t", "30", "--mem=1G"});
  const std::int64_t began = job(runs).start_time();
  const std::uint32_t waits = submit({"--mem=1G", "--begin=now+2hours"});
  stop();
  agent.reset();
  time.wall_ahead = by;
  time.boot_ahead += 600;
  start();
  wire::JobInfo moved = job(runs);
  EXPECT_EQ(moved.state(), "RUNNING");
  EXPECT_EQ(moved.start_time(), began + by);
  EXPECT_NEAR(static_cast<double>(now() - moved.start_time()), 600, 30);
  EXPECT_EQ(job(waits).state(), "PENDING");
  EXPECT_NEAR(static_cast<double>(job(waits).eligible_time() - now()), 7200 - 600, 30);
  EXPECT_EQ(figure("Adopted in all"), std::to_string(by));

  // It was stored: the next one knows both.
  stop();
  start();
  moved = job(runs);
  EXPECT_EQ(moved.start_time(), began + by);
  EXPECT_EQ(figure("Adopted in all"), std::to_string(by));
  EXPECT_EQ(figure("Adopted:"), "0");

  // A step that its node tells of is of the time before.
  agent = std::make_unique<FakeAgent>(socket());
  wire::RegisterNodes report = agent->report();
  wire::NodeReport& node = *report.mutable_nodes(0);
  for (auto& one : *report.mutable_nodes()) {
    if (one.name() != begin.node()) continue;
    wire::HeldJob& held = *one.add_jobs();
    held.set_job_id(runs);
    held.set_attempt(1);
    one.add_steps()->set_spec(begin.batch().ticket().spec());
  }
  ASSERT_EQ(node.name(), "n1");
  agent->enroll(report);
  Talker client(socket());
  wire::ListJobs ask;
  ask.set_with_steps(true);
  const auto steps = client.ask<wire::JobsReply>(ask);
  ASSERT_EQ(steps->steps_size(), 1);
  EXPECT_EQ(steps->steps(0).start_time(), began + by);

  // Under another boot there is the wall clock alone.
  stop();
  agent.reset();
  time.number = 2;
  time.wall_ahead = by + 100;
  start();
  EXPECT_EQ(job(runs).start_time(), began + by);
  EXPECT_EQ(figure("Adopted in all"), std::to_string(by));
}

TEST_P(ClockTest, WhatCannotBeStoredIsAdoptedInMemoryAndStoredLater) {
  const std::int64_t by = GetParam();
  const std::uint32_t runs = run({"-t", "30", "--mem=1G"});
  const std::int64_t began = job(runs).start_time();
  Talker client(socket());
  {
    const FullDisk full;
    time.wall_ahead = by;
    EXPECT_FALSE(client.ask<wire::Done>(wire::Reconfigure()));
    // It is read again as it is stored, which is of the time before.
    EXPECT_EQ(job(runs).start_time(), began + by);
    EXPECT_EQ(job(runs).state(), "RUNNING");
    EXPECT_LT(now() - job(runs).start_time(), 60);
  }
  // What is due to be stored is tried again each second.
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (!client.ask<wire::SubmitReply>(batch("after"))) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  stop();
  agent.reset();
  start();
  EXPECT_EQ(job(runs).start_time(), began + by);
  EXPECT_EQ(job(runs).state(), "RUNNING");
  EXPECT_EQ(figure("Adopted in all"), std::to_string(by));
  EXPECT_EQ(figure("Adopted:"), "0");
}

TEST_P(ClockTest, TicketsAreOfATimeThatIsNeverSet) {
  const std::int64_t by = GetParam();
  const auto answer = [&](std::uint64_t number) {
    wire::Beat beat;
    beat.set_number(number);
    beat.set_ask(true);
    agent->send(beat);
    return agent->find<wire::Beat>();
  };
  const wire::Beat first = answer(1);
  EXPECT_GT(first.even_time(), 0);
  EXPECT_NEAR(static_cast<double>(agent->registered.even_time() - first.even_time()), 0, 30);
  time.wall_ahead = by;
  reconfigure();
  const wire::Beat second = answer(2);
  EXPECT_NEAR(static_cast<double>(second.even_time() - first.even_time()), 0, 30);
  EXPECT_EQ(second.clock_adopted() - first.clock_adopted(), by);
  const std::uint32_t id = run({"-t", "30", "--mem=1G"});
  EXPECT_EQ(id, begin.job_id());
  const auto spec = wire::decode<wire::StepSpec>(begin.batch().ticket().spec());
  EXPECT_NEAR(static_cast<double>(spec->expires() - second.even_time()), 300, 30);
}

}  // namespace
}  // namespace berth::controller
