// Jobs that do not use their GPUs are warned and ended: whose limit it is, who is asked and told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/record.h"
#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GpuIdleTest : public ::testing::Test {
 protected:
  GpuIdleTest() : c(policy()) {}

  static Policy policy() {
    Policy out;
    out.partitions["ml"].gpu_idle_seconds = 600;
    out.partitions["gpu_partition"].max_gpu_idle_seconds = 3600;
    return out;
  }

  /// The nodes that are asked in a tick `seconds` from now.
  std::vector<std::string> asked_after(Time seconds) {
    c.now += seconds;
    c.state.take_effects();
    c.state.tick(c.now);
    std::vector<std::string> out;
    for (const AskGpuIdle& ask : c.effects<AskGpuIdle>()) {
      out.insert(out.end(), ask.nodes.begin(), ask.nodes.end());
    }
    return out;
  }
  /// Effects of the answer stay to be taken.
  void answer(JobId id, const std::string& node, std::optional<Time> idle) {
    wire::JobGpuIdle message;
    message.set_node(node);
    message.set_job_id(id);
    message.set_attempt(c.at(id).attempt);
    if (idle) message.set_idle_ms(static_cast<std::uint64_t>(*idle) * 1000 + 999);
    c.state.job_gpu_idle(message, c.now);
  }
  std::vector<std::string> lines() {
    std::vector<std::string> out;
    for (const SayInBatch& say : c.effects<SayInBatch>()) out.push_back(say.line);
    return out;
  }

  Controller c;
};

TEST_F(GpuIdleTest, AJobIsWarnedTwiceAndEnded) {
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:2 --gpu-idle-timeout=30");
  EXPECT_EQ(c.at(id).gpu_idle_seconds, 1800U);
  EXPECT_THAT(asked_after(899), IsEmpty());
  EXPECT_THAT(asked_after(1), ElementsAre("gpu1"));
  EXPECT_THAT(asked_after(10), IsEmpty()) << "it is asked once";
  answer(id, "gpu1", 910);
  EXPECT_THAT(lines(), ElementsAre("berth: job " + std::to_string(id) +
                                   " has not used its 2 GPUs for 15 minutes; it is ended in 14 "
                                   "minutes unless it does (--gpu-idle-timeout)"));
  EXPECT_THAT(asked_after(830), ElementsAre("gpu1"));
  answer(id, "gpu1", 1740);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("it is ended in 60 seconds")));
  EXPECT_THAT(asked_after(59), IsEmpty());
  EXPECT_THAT(asked_after(1), ElementsAre("gpu1"));
  answer(id, "gpu1", 1800);
  EXPECT_EQ(c.shown(id), "TIMEOUT+COMPLETING GpuIdle");
  bool said = false;
  for (const Effect& effect : c.state.take_effects()) {
    if (const auto* say = std::get_if<SayInBatch>(&effect)) {
      EXPECT_EQ(say->node, "gpu1");
      EXPECT_THAT(say->line, HasSubstr("for 30 minutes and is ended (--gpu-idle-timeout)"));
      said = true;
    }
    if (const auto* end = std::get_if<EndJob>(&effect)) {
      EXPECT_TRUE(said) << "the line comes before the end";
      EXPECT_EQ(end->cause, "GPU IDLE TIMEOUT");
      EXPECT_FALSE(end->now);
    }
  }
  EXPECT_TRUE(said);
  c.gone(id);
  EXPECT_EQ(c.shown(id), "TIMEOUT GpuIdle");
  EXPECT_TRUE(c.idle());
}

TEST_F(GpuIdleTest, OneBusyNodeIsEnough) {
  const JobId id = c.started("-w gpu[1-2] -N2 -n2 --mem=1G --gres=gpu:1 --gpu-idle-timeout=10m");
  for (int i = 0; i < 20; ++i) {
    asked_after(300);
    answer(id, "gpu1", 300 * (i + 1));
    answer(id, "gpu2", 0);
    EXPECT_THAT(lines(), IsEmpty());
  }
  EXPECT_EQ(c.shown(id), "RUNNING None");
  // Nor does a node end it of which nothing is known.
  for (int i = 0; i < 20; ++i) {
    asked_after(300);
    answer(id, "gpu1", 300 * (i + 21));
    answer(id, "gpu2", std::nullopt);
    EXPECT_THAT(lines(), IsEmpty());
  }
  // Nor one that does not answer; it is asked again when it is back.
  EXPECT_THAT(asked_after(300), ElementsAre("gpu1", "gpu2"));
  answer(id, "gpu1", 12300);
  c.state.node_lost("gpu2", c.now);
  EXPECT_THAT(asked_after(100), IsEmpty());
  EXPECT_EQ(c.shown(id), "RUNNING None");
  wire::NodeReport report;
  wire::HeldJob& held = *report.add_jobs();
  held.set_job_id(id);
  held.set_attempt(c.at(id).attempt);
  c.up("gpu2", report);
  std::vector<std::string> again;
  for (const AskGpuIdle& ask : c.effects<AskGpuIdle>()) again = ask.nodes;
  EXPECT_THAT(again, ElementsAre("gpu2"));
}

TEST_F(GpuIdleTest, WhoWaitsAtATerminalIsToldThere) {
  const JobId id =
      c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=100s", "salloc");
  asked_after(50);
  answer(id, "gpu1", 50);
  const auto told = c.effects<Notice>();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].line.text,
            "berth: job " + std::to_string(id) +
                " has not used its GPU for 50 seconds; it is ended in 50 seconds unless it does "
                "(--gpu-idle-timeout)");
  EXPECT_EQ(told[0].line.severity, Severity::bare);
}

TEST_F(GpuIdleTest, APartitionHasADefaultAndABound) {
  const JobId id = c.started("-p ml -N1 -n1 --mem=1G --gres=gpu:1");
  EXPECT_EQ(c.at(id).gpu_idle_seconds, 600U);
  const std::string node = c.at(id).nodes.front();
  EXPECT_THAT(asked_after(300), ElementsAre(node));
  answer(id, node, 300);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("(GpuIdleTimeout of partition ml)")));
  const JobId own = c.started("-p ml -N1 -n1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=0");
  EXPECT_FALSE(c.at(own).gpu_idle_seconds);
  EXPECT_THAT(asked_after(280), ElementsAre(node)) << "the first, shortly before";
  const JobId none = c.started("-p ml -N1 -n1 --mem=1G");
  EXPECT_THAT(asked_after(100000), IsEmpty()) << "no GPUs, no limit";
  EXPECT_EQ(c.shown(none), "RUNNING None");

  // Where there is a bound, it is the default, and nobody asks for more.
  EXPECT_EQ(c.at(c.started("-p gpu_partition -N1 -n1 --mem=1G --gres=gpu:1")).gpu_idle_seconds,
            3600U);
  for (const char* more : {"61", "2h", "0", "unlimited"}) {
    const auto refused = c.state.submit(
        submission(
            std::string("-p gpu_partition,ml -N1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=") +
            more),
        0, kAlice, c.now);
    ASSERT_FALSE(refused) << more;
    EXPECT_THAT(refused.error().hint,
                HasSubstr("partition gpu_partition lets GPUs be idle for 60 minutes"))
        << more;
  }
  EXPECT_NE(c.submit("-p gpu_partition -N1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=1h"), 0U);
}

TEST_F(GpuIdleTest, ItCanBeChanged) {
  const JobId id =
      c.started("-p gpu_partition -N1 -n1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=30");
  const std::string node = c.at(id).nodes.front();
  const auto change = [&](JobId job, std::optional<std::uint32_t> seconds, const Caller& who) {
    JobChange to;
    to.gpu_idle_seconds = seconds;
    return c.state.change(job, to, who, c.now);
  };
  EXPECT_FALSE(change(id, 60, kBob));
  EXPECT_FALSE(change(id, 7200, kAlice)) << "beyond what the partition allows";
  EXPECT_FALSE(change(id, std::nullopt, kAlice));
  EXPECT_TRUE(change(id, 3600, kAlice));
  EXPECT_THAT(asked_after(900), IsEmpty());
  EXPECT_TRUE(change(id, 1000, kAlice));
  EXPECT_THAT(asked_after(0), ElementsAre(node)) << "lowered: it is past the half";
  answer(id, node, 900);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("ended in 100 seconds")));
  EXPECT_THAT(asked_after(100), ElementsAre(node));
  EXPECT_TRUE(change(id, std::nullopt, kRoot));
  answer(id, node, 1000);  // it comes too late
  EXPECT_THAT(asked_after(100000), IsEmpty());
  EXPECT_EQ(c.shown(id), "RUNNING None");
  EXPECT_TRUE(change(id, 1000, kRoot));
  EXPECT_THAT(asked_after(0), ElementsAre(node));
  const auto none = change(c.started("-N1 -n1 --mem=1G"), 60, kAlice);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().hint, HasSubstr("has none"));
  // Nor is a partition with a bound a way around it.
  const JobId waits = c.submit("-H -p ml -N1 -n1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=0");
  const wire::Asked& asked = c.blobs.back();
  EXPECT_FALSE(c.state.update_words(waits, {"--partition=gpu_partition"}, asked, kAlice, c.now));
  EXPECT_TRUE(c.state.update_words(waits, {"--partition=gpu_partition"}, asked, kRoot, c.now));
  EXPECT_TRUE(c.state.update_words(waits, {"--comment=x"}, asked, kAlice, c.now))
      << "what an administrator gave does not bar other changes";
}

TEST_F(GpuIdleTest, ASuspendedJobIsNotAsked) {
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=100s");
  asked_after(50);
  c.now += 10;
  EXPECT_TRUE(c.state.suspend(id, kRoot, c.now));
  answer(id, "gpu1", 60);
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_THAT(asked_after(10000), IsEmpty());
  EXPECT_TRUE(c.state.resume(id, kRoot, c.now));
  EXPECT_THAT(asked_after(0), ElementsAre("gpu1"));
  answer(id, "gpu1", 10060);  // the GPU was idle all the time
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("for 60 seconds; it is ended in 40 seconds")));
}

TEST_F(GpuIdleTest, ItIsStored) {
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=100s");
  asked_after(50);
  answer(id, "gpu1", 50);
  EXPECT_EQ(lines().size(), 1U);
  Stored stored;
  for (const wire::JobRecord& record : c.state.take_dirty().jobs) stored.jobs.push_back(record);
  ASSERT_EQ(stored.jobs.size(), 1U);
  EXPECT_EQ(stored.jobs[0].gpu_idle().seconds(), 100U);
  EXPECT_EQ(stored.jobs[0].gpu_idle().warnings(), 1U);
  State again(place::corpus::make(), policy());
  again.load(stored, [&](std::uint64_t blob) { return std::optional(c.blobs.at(blob)); }, c.now);
  c.now += 20;
  again.tick(c.now);
  wire::JobGpuIdle message;
  message.set_node("gpu1");
  message.set_job_id(id);
  message.set_attempt(1);
  message.set_idle_ms(70000);
  again.take_effects();
  again.job_gpu_idle(message, c.now);
  EXPECT_THAT(again.take_effects(), IsEmpty()) << "it was warned before the restart";
  EXPECT_EQ(again.next_deadline(), c.now + 20) << "shortly before the end";
}

TEST_F(GpuIdleTest, AJobOfAControllerWithoutTheClockGetsOne) {
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1");
  Stored stored;
  for (const wire::JobRecord& record : c.state.take_dirty().jobs) stored.jobs.push_back(record);
  ASSERT_EQ(stored.jobs.size(), 1U);
  stored.jobs[0].clear_gpu_idle();
  State again(place::corpus::make(), policy());
  c.now += 5000;
  again.load(stored, [&](std::uint64_t blob) { return std::optional(c.blobs.at(blob)); }, c.now);
  JobChange to;
  to.gpu_idle_seconds = 100;
  ASSERT_TRUE(again.change(id, to, kAlice, c.now));
  again.take_effects();
  EXPECT_EQ(again.next_deadline(), c.now + 50) << "what was before does not count";
}

TEST_F(GpuIdleTest, TheBoundIsLookedAtAgainWhenTheJobStarts) {
  const JobId asked = c.submit("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=2h");
  const JobId never = c.submit("-w gpu2 -N1 -n1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=0");
  const JobId given = c.submit("-w gpu3 -N1 -n1 --mem=1G --gres=gpu:1");
  JobChange to;
  to.gpu_idle_seconds = std::optional<std::uint32_t>();
  ASSERT_TRUE(c.state.change(given, to, kRoot, c.now));
  Policy less = policy();
  less.partitions["debug"].max_gpu_idle_seconds = 600;
  c.state.reconfigure(place::corpus::make(), less, c.now);
  for (const JobId id : {asked, never, given}) {
    ASSERT_TRUE(c.start(id));
    c.begun(id);
  }
  EXPECT_EQ(c.at(asked).gpu_idle_seconds, 600U);
  EXPECT_EQ(c.at(never).gpu_idle_seconds, 600U);
  EXPECT_EQ(c.at(given).gpu_idle_seconds, std::nullopt) << "an administrator said so";
  const Job again = from_record(c.state.cluster(), to_record(c.state.cluster(), c.at(given)));
  EXPECT_TRUE(again.gpu_idle_by_admin);
  asked_after(300);
  answer(asked, "gpu1", 300);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("(MaxGpuIdleTimeout of partition debug)")));
}

TEST_F(GpuIdleTest, ItIsRefusedWhereItMeansNothing) {
  const auto hint_of = [&](const std::string& line, std::string* says = nullptr) {
    const auto done = c.state.submit(submission(line), 0, kAlice, c.now);
    if (!done) return done.error().hint;
    if (says != nullptr && !done->warnings.empty()) *says = done->warnings.back().text;
    return std::string();
  };
  EXPECT_THAT(hint_of("-N1 --mem=1G --gpu-idle-timeout=30"), HasSubstr("but none are asked for"));
  EXPECT_EQ(hint_of("-N1 --mem=1G --gpu-idle-timeout=0"), "");
  EXPECT_EQ(hint_of("-N1 --mem=1G --exclusive --gpu-idle-timeout=30"), "");
  EXPECT_EQ(hint_of("-p ml -N1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=30"), "");
  wire::NodeReport blind;
  blind.set_gpus_unwatched(true);
  c.up("gpu1", blind);
  std::string says;
  EXPECT_EQ(hint_of("-N1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=30", &says), "");
  EXPECT_THAT(says, HasSubstr("whether the GPUs of gpu1 are in use"));
  EXPECT_THAT(hint_of("-w gpu1 -N1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=30"),
              HasSubstr("leave it out"));
}

TEST_F(GpuIdleTest, AHeterogeneousJobIsOneJob) {
  const JobId id = c.started(
      "-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1 --gpu-idle-timeout=100s : -w gpu2 -N1 -n1 --mem=1G "
      "--gres=gpu:2 --gpu-idle-timeout=200s",
      "salloc");
  const JobId second = id + 1;
  c.begun(second);
  EXPECT_THAT(asked_after(99), IsEmpty()) << "the longer of the two counts";
  EXPECT_THAT(asked_after(1), ElementsAre("gpu1", "gpu2"));
  answer(id, "gpu1", 100);
  answer(second, "gpu2", 100);
  const auto told = c.effects<Notice>();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0].line.text, HasSubstr("its 3 GPUs for 100 seconds"));
}

TEST_F(GpuIdleTest, AComponentThatEndsLastCannotBeChanged) {
  const JobId id = c.started(
      "-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1 : -w gpu2 -N1 -n1 --mem=1G --gres=gpu:2", "salloc");
  c.begun(id + 1);
  ASSERT_TRUE(c.state.cancel(id, {kAlice, {}, false, false, false}, c.now));
  c.gone(id);
  ASSERT_FALSE(c.at(id).running);
  ASSERT_TRUE(c.at(id + 1).running) << "gpu2 has not said that it is gone";
  JobChange to;
  to.comment = "x";
  to.gpu_idle_seconds = std::optional<std::uint32_t>();
  const auto refused = c.state.change(id + 1, to, kAlice, c.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what(), job_error(JobFault::already_done).what());
  to.gpu_idle_seconds.reset();
  EXPECT_TRUE(c.state.change(id + 1, to, kAlice, c.now)) << "comments are taken";
}

TEST_F(GpuIdleTest, AComponentThatStartsAgainCanBeChangedBeforeItIsGone) {
  const JobId id =
      c.submit("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1 : -w gpu2 -N1 -n1 --mem=1G --gres=gpu:2");
  ASSERT_TRUE(c.start(id));
  c.begun(id);
  c.begun(id + 1);
  ASSERT_TRUE(c.state.requeue(id, kAlice, false, c.now));
  c.gone(id);
  JobChange to;
  to.gpu_idle_seconds = 60;
  EXPECT_TRUE(c.state.change(id + 1, to, kAlice, c.now));
}

}  // namespace
}  // namespace berth::job::testing
