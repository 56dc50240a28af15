#include "command/efficiency_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::command {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

wire::GpuUse use_of(std::uint32_t index, std::uint64_t busy, std::uint32_t processes) {
  wire::GpuUse out;
  out.set_node("n1");
  out.set_index(index);
  out.set_rounds(100);
  out.set_busy_sum(busy * 100);
  out.set_busy_most(static_cast<std::uint32_t>(busy));
  out.set_memory_most_mb(20480);
  out.set_memory_mb(81920);
  out.set_processes_now(processes);
  out.set_energy_mj(3600000);
  out.set_idle_rounds(busy > 0 ? 0 : 100);
  return out;
}

wire::HistoryJob job_of(const std::string& state) {
  wire::HistoryJob out;
  wire::JobInfo& info = *out.mutable_job();
  info.set_id(12);
  info.set_name("train");
  info.set_user("ann");
  info.set_state(state);
  info.set_nodes("n1");
  info.set_cpus(4);
  info.set_start_time(1000);
  info.set_end_time(1100);
  info.set_alloc_tres("cpu=4,mem=64G,node=1");
  wire::HistoryStep& step = *out.add_steps();
  step.set_user_microseconds(150'000'000);
  step.set_system_microseconds(50'000'000);
  step.set_max_rss_kb(2 << 20);
  return out;
}

TEST(Efficiency, WhatAJobMadeOfWhatItHad) {
  wire::HistoryJob job = job_of("COMPLETED");
  *job.mutable_job()->add_gpu_use() = use_of(0, 90, 0);
  const Efficiency found = efficiency_of(job, nullptr, 5000);
  EXPECT_DOUBLE_EQ(*found.cpu_percent, 50);
  EXPECT_THAT(found.hints, IsEmpty());
  EXPECT_EQ(
      efficiency_text(found),
      "job 12  train of ann  COMPLETED, 00:01:40 on n1\n"
      "  CPUs      4 for 00:01:40: 200.00 CPU seconds used, 50.0 %\n"
      "  memory    64G; the largest task had 2.0G\n"
      "  GPUs      n1:0  busy 90 % (most 90 %)  memory 20.0G of 80.0G (25 %)  energy 1.0 Wh\n");
}

TEST(Efficiency, OfARunningJobTheNewestIsTaken) {
  const wire::HistoryJob job = job_of("RUNNING");
  wire::JobInfo live = job.job();
  *live.add_gpu_use() = use_of(0, 0, 0);
  const Efficiency found = efficiency_of(job, &live, 1010);
  EXPECT_EQ(found.seconds, 10);
  EXPECT_FALSE(found.cpu_percent) << "steps tell their CPU time when they end";
  EXPECT_THAT(efficiency_text(found), HasSubstr("now 0 %, 0M, idle for 00:01:40"));
  wire::HistoryJob fresh = job;
  fresh.clear_steps();
  EXPECT_THAT(efficiency_text(efficiency_of(fresh, &live, 1010)),
              HasSubstr("  CPUs      4\n  memory    64G\n"))
      << "no figures of steps that have not told any";
}

TEST(Efficiency, TasksThatCrowdOnOneGpuAreNamed) {
  wire::HistoryJob job = job_of("RUNNING");
  *job.mutable_job()->add_gpu_use() = use_of(2, 0, 0);
  *job.mutable_job()->add_gpu_use() = use_of(0, 80, 4);
  *job.mutable_job()->add_gpu_use() = use_of(1, 0, 0);
  const Efficiency found = efficiency_of(job, nullptr, 1100);
  ASSERT_EQ(found.hints.size(), 1U);
  EXPECT_THAT(found.hints.front(), HasSubstr("4 processes use GPU 0 of n1, GPUs 1-2 are idle"));
  // One process on each is as it should be.
  wire::HistoryJob good = job_of("RUNNING");
  for (std::uint32_t i = 0; i < 3; ++i) *good.mutable_job()->add_gpu_use() = use_of(i, 5, 1);
  EXPECT_THAT(efficiency_of(good, nullptr, 1100).hints, IsEmpty());
}

TEST(Efficiency, GpusThatWereNeverBusyAreNamed) {
  wire::HistoryJob job = job_of("COMPLETED");
  *job.mutable_job()->add_gpu_use() = use_of(0, 80, 0);
  *job.mutable_job()->add_gpu_use() = use_of(1, 0, 0);
  EXPECT_THAT(efficiency_of(job, nullptr, 5000).hints,
              ElementsAre(HasSubstr("GPU 1 of n1 was never busy")));
  job.mutable_job()->mutable_gpu_use(1)->set_rounds(3);
  EXPECT_THAT(efficiency_of(job, nullptr, 5000).hints, IsEmpty()) << "too few looks to tell";
}

TEST(Efficiency, AGpuThatWentBadIsNamed) {
  wire::HistoryJob job = job_of("COMPLETED");
  *job.mutable_job()->add_gpu_use() = use_of(0, 80, 0);
  *job.mutable_job()->add_gpu_use() = use_of(1, 0, 0);
  job.mutable_job()->mutable_gpu_use(1)->set_trouble("it does not answer");
  const Efficiency found = efficiency_of(job, nullptr, 5000);
  EXPECT_THAT(found.hints,
              ElementsAre(HasSubstr("GPU 1 of n1 went out of service while the job had it")));
  EXPECT_THAT(efficiency_text(found), HasSubstr("  out of service: it does not answer\n"));
}

TEST(Efficiency, JsonHasWhatIsSoNowOnlyWhileItRuns) {
  for (const bool runs : {true, false}) {
    wire::HistoryJob job = job_of(runs ? "RUNNING" : "FAILED");
    *job.mutable_job()->add_gpu_use() = use_of(0, 80, 1);
    JsonText json;
    append_efficiency_json(json, efficiency_of(job, nullptr, 1100));
    const std::string text = std::move(json).done();
    EXPECT_THAT(text, HasSubstr("\"busy_percent\": 80"));
    EXPECT_EQ(text.find("busy_percent_now") != std::string::npos, runs);
  }
}

}  // namespace
}  // namespace berth::command
