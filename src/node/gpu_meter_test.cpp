// Rounds of looks at GPUs become sums for each job.
#include "node/gpu_meter.h"

#include <gtest/gtest.h>

namespace berth::node {
namespace {

survey::Sample sample(std::uint32_t gpu, std::uint32_t busy, std::uint64_t memory,
                      std::uint64_t power = 1000) {
  survey::Sample out;
  out.gpu = gpu;
  out.busy_percent = busy;
  out.memory_used_mb = memory;
  out.power_mw = power;
  return out;
}

GpuRound round_of(const std::vector<survey::Sample>& samples) {
  GpuRound out;
  for (const survey::Sample& one : samples) out.samples[one.gpu] = one;
  return out;
}

const NodeJob kJob{"n1", 7, 1};
const NodeJob kOther{"n1", 8, 1};

TEST(GpuMeter, SumsBeginAnewWhenTheyAreTaken) {
  // Jobs count the GPUs in another order than the library.
  GpuMeter meter({{1U, {}, "h100", 80000}, {0U, {}, "h100", 80000}});
  EXPECT_TRUE(meter.watches_any());
  const std::vector<Jobs::Holder> holders = {{kJob, Bits::range(0, 0)},
                                             {kOther, Bits::range(1, 1)}};
  meter.add(round_of({sample(0, 0, 10), sample(1, 50, 1000)}), holders);
  meter.add(round_of({sample(0, 0, 10), sample(1, 100, 500)}), holders);
  wire::JobGpus told = meter.take(kJob);
  ASSERT_EQ(told.gpus_size(), 1);
  EXPECT_EQ(told.job_id(), 7U);
  const wire::GpuUse& use = told.gpus(0);
  EXPECT_EQ(use.index(), 0U);
  EXPECT_EQ(use.rounds(), 2U);
  EXPECT_EQ(use.busy_sum(), 150U);
  EXPECT_EQ(use.busy_most(), 100U);
  EXPECT_EQ(use.memory_most_mb(), 1000U);
  EXPECT_EQ(use.memory_now_mb(), 500U);
  EXPECT_EQ(use.energy_mj(), 2000U);
  EXPECT_EQ(use.idle_rounds(), 0U);
  EXPECT_EQ(meter.take(kJob).gpus_size(), 0) << "there was no look since";
  // How long the other has been idle is not forgotten with the sums.
  EXPECT_EQ(meter.take(kOther).gpus(0).idle_rounds(), 2U);
  meter.add(round_of({sample(0, 0, 10), sample(1, 0, 500)}), holders);
  EXPECT_EQ(meter.take(kOther).gpus(0).idle_rounds(), 3U);
  meter.forget(kOther);
  EXPECT_EQ(meter.jobs(), std::vector<NodeJob>{kJob});
}

TEST(GpuMeter, OfAPartOnlyItsOwnProcessesCount) {
  GpuMeter meter({{0U, 3U, "a100_1g.5gb", 5000}});
  GpuRound round = round_of({sample(0, 70, 39000)});
  round.processes = {{0, 11, 1000, 3U}, {0, 12, 9000, 4U}, {1, 13, 500, 3U}};
  meter.add(round, {{kJob, Bits::range(0, 0)}});
  const wire::JobGpus told = meter.take(kJob);
  EXPECT_EQ(told.gpus(0).memory_now_mb(), 1000U);
  EXPECT_EQ(told.gpus(0).processes_now(), 1U);
}

TEST(GpuMeter, WhatIsNotToldIsNotCounted) {
  GpuMeter meter({{0U, {}, "", 0}, {std::nullopt, {}, "", 0}});
  meter.add(round_of({}), {{kJob, Bits::range(0, 5)}});
  EXPECT_EQ(meter.take(kJob).gpus_size(), 0) << "a GPU that is lost, one that nobody watches, none";
  EXPECT_FALSE(GpuMeter({{std::nullopt, {}, "", 0}}).watches_any());
}

}  // namespace
}  // namespace berth::node
