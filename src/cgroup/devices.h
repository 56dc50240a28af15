// Which devices a group of processes may open, as a list of rules, and the program by which the
// kernel keeps to them: rules in, instructions out.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace berth::cgroup {

struct DeviceId {
  bool block = false;  // else a character device
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  friend auto operator<=>(const DeviceId&, const DeviceId&) = default;
};

struct DeviceRule {
  bool block = false;
  std::uint32_t major = 0;
  std::optional<std::uint32_t> minor;  // unset = all
  bool allow = false;
  friend bool operator==(const DeviceRule&, const DeviceRule&) = default;
};

/// The first rule that fits decides; a device that no rule names may be opened.
bool allowed(std::span<const DeviceRule> rules, const DeviceId& device);

/// Those of `known` that the rules forbid. For means that know no wildcards with holes.
std::vector<DeviceId> forbidden(std::span<const DeviceRule> rules, std::span<const DeviceId> known);

/// A program of type BPF_PROG_TYPE_CGROUP_DEVICE that says 1 to what is allowed and 0 to the rest,
/// for reading, writing and mknod alike.
std::vector<bpf_insn> device_program(std::span<const DeviceRule> rules);

}  // namespace berth::cgroup
