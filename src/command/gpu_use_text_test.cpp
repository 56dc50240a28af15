// What a job makes of its GPUs, in one word.
#include "command/gpu_use_text.h"

#include <gtest/gtest.h>

namespace berth::command {
namespace {

GpuUses two(std::uint32_t power_mw, std::uint64_t energy_mj) {
  GpuUses uses;
  for (int i = 0; i < 2; ++i) {
    wire::GpuUse& use = *uses.Add();
    use.set_rounds(10);
    use.set_power_now_mw(power_mw);
    use.set_energy_mj(energy_mj);
    use.set_idle_rounds(static_cast<std::uint32_t>(60 * (i + 1)));
  }
  return uses;
}

std::string power(const GpuUses& uses) {
  std::string out;
  append_gpu_power(out, uses);
  return out;
}
std::string energy(const GpuUses& uses, bool convert = true) {
  std::string out;
  append_gpu_energy(out, uses, convert);
  return out;
}

TEST(GpuUseText, PowerAndEnergyOfAll) {
  EXPECT_EQ(power(two(649'700, 0)), "1299W");
  EXPECT_EQ(energy(two(0, 158'760'000)), "317.52K");
  EXPECT_EQ(energy(two(0, 158'760'000), false), "317520");
  EXPECT_EQ(energy(two(0, 400'000)), "800");
  EXPECT_EQ(energy(two(0, 2'500'000'000)), "5M");
}

TEST(GpuUseText, WhatNoGpuTellsIsNotKnown) {
  EXPECT_EQ(power(two(0, 0)), "N/A");
  EXPECT_EQ(energy(two(0, 0)), "N/A");
  EXPECT_EQ(power({}) + energy({}), "N/AN/A");
  std::string idle;
  append_gpu_idle(idle, two(0, 0));
  EXPECT_EQ(idle, "00:01:00") << "of all of them: the shortest";
}

}  // namespace
}  // namespace berth::command
