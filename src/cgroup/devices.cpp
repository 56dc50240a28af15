// What devices.h promises.
#include "cgroup/devices.h"

#include <cstddef>

namespace berth::cgroup {
namespace {

constexpr std::uint8_t kVerdict = BPF_REG_0;
constexpr std::uint8_t kContext = BPF_REG_1;
constexpr std::uint8_t kType = BPF_REG_2;
constexpr std::uint8_t kMajor = BPF_REG_3;
constexpr std::uint8_t kMinor = BPF_REG_4;

bpf_insn instruction(std::uint8_t code, std::uint8_t to, std::uint8_t from, std::int16_t offset,
                     std::int32_t value) {
  bpf_insn out{};
  out.code = code;
  out.dst_reg = to & 0xf;
  out.src_reg = from & 0xf;
  out.off = offset;
  out.imm = value;
  return out;
}

bpf_insn load(std::uint8_t to, std::size_t offset) {
  return instruction(BPF_LDX | BPF_MEM | BPF_W, to, kContext, static_cast<std::int16_t>(offset), 0);
}

/// Over the next `skip` instructions unless the register holds the value. 32 bits wide: a number
/// above 2^31 would be taken for a negative one otherwise.
bpf_insn unless(std::uint8_t reg, std::uint32_t value, std::int16_t skip) {
  return instruction(BPF_JMP32 | BPF_JNE | BPF_K, reg, 0, skip, static_cast<std::int32_t>(value));
}

void answer(std::vector<bpf_insn>& program, bool yes) {
  program.push_back(instruction(BPF_ALU64 | BPF_MOV | BPF_K, kVerdict, 0, 0, yes ? 1 : 0));
  program.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
}

}  // namespace

bool allowed(std::span<const DeviceRule> rules, const DeviceId& device) {
  for (const DeviceRule& rule : rules) {
    if (rule.block == device.block && rule.major == device.major &&
        (!rule.minor || *rule.minor == device.minor)) {
      return rule.allow;
    }
  }
  return true;
}

std::vector<DeviceId> forbidden(std::span<const DeviceRule> rules,
                                std::span<const DeviceId> known) {
  std::vector<DeviceId> out;
  for (const DeviceId& device : known) {
    if (!allowed(rules, device)) out.push_back(device);
  }
  return out;
}

std::vector<bpf_insn> device_program(std::span<const DeviceRule> rules) {
  std::vector<bpf_insn> program;
  program.reserve(rules.size() * 5 + 6);
  // The upper half of access_type says what is to be done with the device.
  program.push_back(load(kType, offsetof(bpf_cgroup_dev_ctx, access_type)));
  program.push_back(instruction(BPF_ALU | BPF_AND | BPF_K, kType, 0, 0, 0xffff));
  program.push_back(load(kMajor, offsetof(bpf_cgroup_dev_ctx, major)));
  program.push_back(load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor)));
  for (const DeviceRule& rule : rules) {
    const std::int16_t rest = rule.minor ? 3 : 2;
    program.push_back(unless(kType, rule.block ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR,
                             static_cast<std::int16_t>(rest + 1)));
    program.push_back(unless(kMajor, rule.major, rest));
    if (rule.minor) program.push_back(unless(kMinor, *rule.minor, 2));
    answer(program, rule.allow);
  }
  answer(program, true);
  return program;
}

}  // namespace berth::cgroup
