// Sizes, frequencies and TRES texts of what steps use, as Slurm 22.05 was seen to write them.
#include "command/usage_text.h"

#include <gtest/gtest.h>

#include "wire/step_figures.h"

namespace berth::command {
namespace {

constexpr UsageStyle kNatural{};
constexpr UsageStyle kNoConvert{.convert = false};

std::string bytes(std::uint64_t value, const UsageStyle& style = kNatural) {
  std::string out;
  append_bytes(out, value, style);
  return out;
}

TEST(UsageText, SizesTakeALargerUnitWhereHalvesOfItAreExact) {
  const struct {
    std::uint64_t value;
    const char* shown;
  } rows[] = {
      {0, "0"},
      {512, "512"},
      {513, "513"},
      {817, "817"},
      {1024, "1K"},
      {1536, "1.50K"},
      {2560, "2.50K"},
      {6976, "6976"},
      {786432, "768K"},
      {1048576, "1M"},
      {1572864, "1.50M"},
      {1609728, "1572K"},
      {66129920, "64580K"},
      {17301504, "16.50M"},
      {1073741824, "1G"},
      {1ULL << 60, "1E"},
      {UINT64_MAX, "18446744073709551615"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(bytes(row.value), row.shown);
    EXPECT_EQ(bytes(row.value, kNoConvert), std::to_string(row.value));
  }
  EXPECT_EQ(bytes(1572864, {.convert = true, .unit = 'M'}), "1.50M");
  EXPECT_EQ(bytes(1609728, {.convert = true, .unit = 'M'}), "1.54M");
  EXPECT_EQ(bytes(1609728, {.convert = true, .unit = 'K'}), "1572K");
}

TEST(UsageText, Frequencies) {
  const auto khz = [](std::uint64_t value, bool convert) {
    std::string out;
    append_khz(out, value, convert);
    return out;
  };
  EXPECT_EQ(khz(2'596'000, true), "2.60G");
  EXPECT_EQ(khz(2'596'000, false), "2596000K");
  EXPECT_EQ(khz(800'000, true), "800M");
  EXPECT_EQ(khz(0, true), "0");
}

/// Two tasks on two nodes.
wire::StepFigures two_tasks() {
  wire::StepFigures sum;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    wire::StepFigures node;
    wire::note(*node.mutable_cpu(), rank, 2'000'000 * (rank + 1));
    wire::note(*node.mutable_memory(), rank, 1024 * (3 - rank), 4096);
    wire::note(*node.mutable_address_space(), rank, 2048);
    wire::note(*node.mutable_pages(), rank, rank);
    wire::note(*node.mutable_read(), rank, 817);
    wire::note(*node.mutable_written(), rank, 31 + rank);
    wire::note(*node.mutable_cpu_khz(), rank, 2'600'000);
    wire::note(*node.mutable_gpu_memory(), rank, (rank + 1) * (30000ULL << 20));
    wire::note(*node.mutable_gpu_busy(), rank, 80 + 10 * rank);
    wire::add_figures(sum, node, rank == 0 ? "n1" : "n2");
  }
  return sum;
}

TEST(UsageText, EveryPartOfATresText) {
  const wire::StepFigures figures = two_tasks();
  const StepUsed step{.figures = figures, .nodes = "n[1-2]"};
  const struct {
    Part part;
    const char* in;
    const char* out;
  } rows[] = {
      {Part::average,
       "cpu=00:00:03,energy=0,fs/disk=817,gres/gpumem=45000M,gres/gpuutil=85,mem=2.50K,pages=0,"
       "vmem=2K",
       "energy=0,fs/disk=31"},
      {Part::most,
       "cpu=00:00:04,energy=0,fs/disk=817,gres/gpumem=60000M,gres/gpuutil=90,mem=4K,pages=1,"
       "vmem=2K",
       "energy=0,fs/disk=32"},
      {Part::most_node,
       "cpu=n2,energy=n1,fs/disk=n1,gres/gpumem=n2,gres/gpuutil=n2,mem=n1,pages=n2,vmem=n1",
       "energy=n1,fs/disk=n2"},
      {Part::most_task, "cpu=1,fs/disk=0,gres/gpumem=1,gres/gpuutil=1,mem=0,pages=1,vmem=0",
       "fs/disk=1"},
      {Part::least,
       "cpu=00:00:02,energy=0,fs/disk=817,gres/gpumem=30000M,gres/gpuutil=80,mem=2K,pages=0,"
       "vmem=2K",
       "energy=0,fs/disk=31"},
      {Part::least_node,
       "cpu=n1,energy=n1,fs/disk=n1,gres/gpumem=n1,gres/gpuutil=n1,mem=n2,pages=n1,vmem=n1",
       "energy=n1,fs/disk=n1"},
      {Part::least_task, "cpu=0,fs/disk=0,gres/gpumem=0,gres/gpuutil=0,mem=1,pages=0,vmem=0",
       "fs/disk=0"},
      {Part::total,
       "cpu=00:00:06,energy=0,fs/disk=1634,gres/gpumem=90000M,gres/gpuutil=170,mem=5K,pages=1,"
       "vmem=4K",
       "energy=0,fs/disk=63"},
  };
  for (const auto& row : rows) {
    std::string in;
    append_used_in(in, step, row.part, kNatural);
    EXPECT_EQ(in, row.in);
    std::string out;
    append_used_out(out, step, row.part, kNatural);
    EXPECT_EQ(out, row.out);
  }
  std::string plain;
  append_used_in(plain, step, Part::average, kNoConvert);
  EXPECT_EQ(plain,
            "cpu=00:00:03,energy=0,fs/disk=817,gres/gpumem=47185920000,gres/gpuutil=85,mem=2560,"
            "pages=0,vmem=2048");
}

TEST(UsageText, EnergyIsOfNodesWhereTheirGpusTellIt) {
  wire::StepFigures figures;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    wire::StepFigures node;
    wire::note(*node.mutable_cpu(), rank, 1'000'000);
    wire::note(*node.mutable_gpu_energy(), rank, 4'500'000 * (rank + 1));
    wire::add_figures(figures, node, rank == 0 ? "n1" : "n2");
  }
  const StepUsed step{.figures = figures, .nodes = "n[1-2]"};
  const auto in = [&](Part part) {
    std::string out;
    append_used_in(out, step, part, kNatural);
    return out;
  };
  EXPECT_EQ(in(Part::total), "cpu=00:00:02,energy=13500");
  EXPECT_EQ(in(Part::average), "cpu=00:00:01,energy=6750");
  EXPECT_EQ(in(Part::most), "cpu=00:00:01,energy=9000");
  EXPECT_EQ(in(Part::most_node), "cpu=n1,energy=n2");
  EXPECT_EQ(in(Part::most_task), "cpu=0");
  EXPECT_EQ(joules_of(figures), 13500U);
  EXPECT_EQ(joules_of({}), 0U);
  std::string out;
  append_used_out(out, step, Part::total, kNatural);
  EXPECT_EQ(out, "energy=0");
}

TEST(UsageText, UnitsAreOfSizes) {
  const wire::StepFigures figures = two_tasks();
  const StepUsed step{.figures = figures, .nodes = "n[1-2]"};
  const auto in_kilobytes = [&](Quantity what) {
    std::string out;
    append_used(out, step, what, Part::total, {.convert = true, .unit = 'K'});
    return out;
  };
  EXPECT_EQ(in_kilobytes(Quantity::memory), "5K");
  EXPECT_EQ(in_kilobytes(Quantity::written), "0.06K");
  EXPECT_EQ(in_kilobytes(Quantity::pages), "1");
  EXPECT_EQ(in_kilobytes(Quantity::cpu), "00:00:06");
}

TEST(UsageText, WhatWasNotMeasuredIsNotShown) {
  wire::StepFigures figures;
  wire::note(*figures.mutable_cpu(), 0, 1'000'000);
  const auto in = [&](Part part, bool tasks_known) {
    std::string out;
    append_used_in(out, {.figures = figures, .nodes = "n7", .tasks_known = tasks_known}, part,
                   kNatural);
    append_used(out, {.figures = figures, .nodes = "n7", .tasks_known = tasks_known},
                Quantity::read, part, kNatural);
    return out;
  };
  EXPECT_EQ(in(Part::most, true), "cpu=00:00:01,energy=0");
  EXPECT_EQ(in(Part::most_node, true), "cpu=n7,energy=n7") << "the step's only node";
  EXPECT_EQ(in(Part::total, false), "cpu=00:00:01,energy=0");
  EXPECT_EQ(in(Part::least, false), "");
  EXPECT_EQ(in(Part::most_node, false), "");
}

}  // namespace
}  // namespace berth::command
