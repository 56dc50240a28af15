// Rules, and the program made of them: run by a small interpreter here, and by the kernel in
// kernel_test.cpp.
#include "cgroup/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

namespace berth::cgroup {
namespace {

/// The few instructions that device programs are made of. -1: the program is not one of them.
int run(const std::vector<bpf_insn>& program, const bpf_cgroup_dev_ctx& context) {
  std::array<std::uint64_t, 11> reg{};
  const std::array<std::uint32_t, 3> fields{context.access_type, context.major, context.minor};
  std::size_t at = 0;
  for (std::size_t steps = 0; steps <= program.size() && at < program.size(); ++steps) {
    const bpf_insn& one = program[at++];
    const auto value = static_cast<std::uint32_t>(one.imm);
    switch (one.code) {
      case BPF_LDX | BPF_MEM | BPF_W:
        if (one.src_reg != BPF_REG_1 || one.off % 4 != 0 || one.off < 0 || one.off > 8) return -1;
        reg[one.dst_reg] = fields[static_cast<std::size_t>(one.off) / 4];
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        reg[one.dst_reg] = static_cast<std::uint32_t>(reg[one.dst_reg]) & value;
        break;
      case BPF_ALU64 | BPF_MOV | BPF_K:
        reg[one.dst_reg] = value;
        break;
      case BPF_JMP32 | BPF_JNE | BPF_K:
        if (static_cast<std::uint32_t>(reg[one.dst_reg]) != value) {
          at += static_cast<std::size_t>(one.off);
        }
        break;
      case BPF_JMP | BPF_EXIT:
        return static_cast<int>(reg[BPF_REG_0]);
      default:
        return -1;
    }
  }
  return -1;
}

int run(std::span<const DeviceRule> rules, const DeviceId& device, std::uint32_t access) {
  const std::uint32_t type = device.block ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
  return run(device_program(rules), {access << 16 | type, device.major, device.minor});
}

TEST(Devices, FirstRuleThatFitsDecides) {
  const std::vector<DeviceRule> rules = {{false, 195, 1, true},
                                         {false, 195, 255, true},
                                         {false, 195, std::nullopt, false},
                                         {true, 8, 0, false}};
  for (const std::uint32_t access : {1U, 2U, 4U, 7U}) {
    EXPECT_EQ(run(rules, {false, 195, 1}, access), 1);
    EXPECT_EQ(run(rules, {false, 195, 0}, access), 0);
    EXPECT_EQ(run(rules, {false, 195, 255}, access), 1);
    EXPECT_EQ(run(rules, {true, 195, 0}, access), 1) << "a block device is another one";
    EXPECT_EQ(run(rules, {true, 8, 0}, access), 0);
    EXPECT_EQ(run(rules, {false, 1, 3}, access), 1) << "not named: open";
  }
  EXPECT_EQ(run({}, {false, 195, 0}, 2), 1);
}

TEST(Devices, TheProgramSaysWhatTheRulesSay) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<DeviceRule> rules(random() % 12);
    for (DeviceRule& rule : rules) {
      rule = {random() % 4 == 0,
              random() % 3 == 0 ? 0xfffffff0U : static_cast<std::uint32_t>(random() % 3),
              std::nullopt, random() % 2 == 0};
      if (random() % 3 != 0) rule.minor = static_cast<std::uint32_t>(random() % 3);
    }
    const DeviceId device{
        random() % 4 == 0,
        random() % 3 == 0 ? 0xfffffff0U : static_cast<std::uint32_t>(random() % 3),
        static_cast<std::uint32_t>(random() % 3)};
    ASSERT_EQ(run(rules, device, 2), allowed(rules, device) ? 1 : 0) << "round " << round;
  }
}

TEST(Devices, NamesWhatIsForbidden) {
  const std::vector<DeviceRule> rules = {{false, 195, 1, true}, {false, 195, std::nullopt, false}};
  const std::vector<DeviceId> known = {{false, 195, 0}, {false, 195, 1}, {false, 1, 3}};
  EXPECT_THAT(forbidden(rules, known), testing::ElementsAre(DeviceId{false, 195, 0}));
}

}  // namespace
}  // namespace berth::cgroup
