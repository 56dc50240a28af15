// What of /dev belongs to GPUs, beyond the files that gres.conf names: a step that was given none
// must not find another way to one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cgroup/devices.h"

namespace berth::cgroup {

/// Where to look; tests point it elsewhere.
struct DevicePlaces {
  std::string dev = "/dev";
  std::string proc = "/proc";
  std::string sys = "/sys";
};

struct GpuDevices {
  std::set<DeviceId> there;  // nvidia0, dri/card0, kfd, nvidia-caps/…, those that exist
  /// Other nodes of the same GPU: /dev/dri/card0 and renderD128 of /dev/nvidia0.
  std::map<DeviceId, std::vector<DeviceId>> same_gpu;
  std::optional<DeviceId> kfd;              // of all AMD GPUs together
  std::optional<std::uint32_t> caps_major;  // of MIG instances
};

GpuDevices gpu_devices_here(const DevicePlaces& places = {});

/// The number of a device file; nullopt when there is no such device.
std::optional<DeviceId> device_of(const std::string& file);

/// A step's rules: its own devices and what belongs to them, none of `others`, no GPU besides.
/// What all GPUs share (nvidiactl, nvidia-uvm) and everything else stays open.
std::vector<DeviceRule> device_rules(const GpuDevices& gpus, const std::set<DeviceId>& own,
                                     const std::set<DeviceId>& others);

}  // namespace berth::cgroup
