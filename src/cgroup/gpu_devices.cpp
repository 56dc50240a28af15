// What gpu_devices.h promises.
#include "cgroup/gpu_devices.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cgroup/kernel.h"

namespace berth::cgroup {
namespace {

namespace fs = std::filesystem;

// Numbers that the kernel's list of devices has for good.
constexpr std::uint32_t kNvidiaMajor = 195;
constexpr std::uint32_t kNvidiaModeset = 254;
constexpr std::uint32_t kNvidiaControl = 255;
constexpr std::uint32_t kDriMajor = 226;
constexpr std::size_t kMostEntries = 4096;  // of one directory: more is not a list of GPUs

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end;
       !failed && at != end && names.size() < kMostEntries; at.increment(failed)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string text_of(const std::string& file) {
  return this_kernel().read(file).value_or("");
}

template <class T>
std::optional<T> leading_number(std::string_view text) {
  T value{};
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc()) return std::nullopt;
  return value;
}

/// "226:128\n" of a file named dev in sysfs.
std::optional<DeviceId> numbers_of(const std::string& file) {
  const std::string text = text_of(file);
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const auto major = leading_number<std::uint32_t>(text);
  const auto minor = leading_number<std::uint32_t>(std::string_view(text).substr(colon + 1));
  if (!major || !minor) return std::nullopt;
  return DeviceId{false, *major, *minor};
}

/// card0, renderD128 of one device of a bus.
std::vector<DeviceId> drm_nodes(const std::string& device) {
  std::vector<DeviceId> nodes;
  for (const std::string& name : names_in(device + "/drm")) {
    if (const auto id = numbers_of(fmt::format("{}/drm/{}/dev", device, name)))
      nodes.push_back(*id);
  }
  return nodes;
}

/// "Device Minor: \t 0" in /proc/driver/nvidia/gpus/<bus>/information.
std::optional<DeviceId> nvidia_minor(const std::string& information) {
  constexpr std::string_view kKey = "Device Minor:";
  const std::size_t at = information.find(kKey);
  if (at == information.npos) return std::nullopt;
  const std::size_t digit = information.find_first_not_of(" \t", at + kKey.size());
  if (digit == information.npos) return std::nullopt;
  const auto minor = leading_number<std::uint32_t>(std::string_view(information).substr(digit));
  if (!minor) return std::nullopt;
  return DeviceId{false, kNvidiaMajor, *minor};
}

void pair_nodes(const DevicePlaces& places, GpuDevices& out) {
  const std::string driver = places.proc + "/driver/nvidia/gpus";
  for (const std::string& bus : names_in(driver)) {
    const auto gpu = nvidia_minor(text_of(fmt::format("{}/{}/information", driver, bus)));
    if (!gpu) continue;
    for (const DeviceId& node : drm_nodes(fmt::format("{}/bus/pci/devices/{}", places.sys, bus))) {
      out.same_gpu[*gpu].push_back(node);
    }
  }
  // What gres.conf names of an AMD or Intel GPU is one of these nodes.
  for (const std::string& name : names_in(places.sys + "/class/drm")) {
    if (!name.starts_with("renderD") && !name.starts_with("card")) continue;
    const std::string node = fmt::format("{}/class/drm/{}", places.sys, name);
    const auto id = numbers_of(node + "/dev");
    if (!id) continue;
    for (const DeviceId& other : drm_nodes(node + "/device")) {
      if (other != *id) out.same_gpu[*id].push_back(other);
    }
  }
}

std::optional<std::uint32_t> major_named(const std::string& devices, std::string_view name) {
  std::string_view rest = devices;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("Block")) return std::nullopt;
    while (line.starts_with(' ')) line.remove_prefix(1);
    const auto major = leading_number<std::uint32_t>(line);
    const std::size_t space = line.find(' ');
    if (major && space != line.npos && line.substr(space + 1) == name) return major;
  }
  return std::nullopt;
}

}  // namespace

std::optional<DeviceId> device_of(const std::string& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return std::nullopt;
  if (!S_ISCHR(found.st_mode) && !S_ISBLK(found.st_mode)) return std::nullopt;
  return DeviceId{S_ISBLK(found.st_mode), major(found.st_rdev), minor(found.st_rdev)};
}

GpuDevices gpu_devices_here(const DevicePlaces& places) {
  GpuDevices out;
  const auto take = [&](const std::string& file) {
    if (const auto id = device_of(file)) out.there.insert(*id);
  };
  for (const std::string& name : names_in(places.dev)) {
    const bool gpu = name.starts_with("nvidia") && name.size() > 6 &&
                     name.find_first_not_of("0123456789", 6) == name.npos;
    if (gpu) take(fmt::format("{}/{}", places.dev, name));
  }
  for (const char* folder : {"dri", "nvidia-caps"}) {
    for (const std::string& name : names_in(fmt::format("{}/{}", places.dev, folder))) {
      take(fmt::format("{}/{}/{}", places.dev, folder, name));
    }
  }
  out.kfd = device_of(places.dev + "/kfd");
  if (out.kfd) out.there.insert(*out.kfd);
  out.caps_major = major_named(text_of(places.proc + "/devices"), "nvidia-caps");
  pair_nodes(places, out);
  return out;
}

std::vector<DeviceRule> device_rules(const GpuDevices& gpus, const std::set<DeviceId>& own,
                                     const std::set<DeviceId>& others) {
  std::vector<DeviceRule> rules;
  std::set<DeviceId> allowed = own;
  for (const DeviceId& device : own) {
    if (const auto at = gpus.same_gpu.find(device); at != gpus.same_gpu.end()) {
      allowed.insert(at->second.begin(), at->second.end());
    }
    if (device.major == kDriMajor && gpus.kfd) allowed.insert(*gpus.kfd);
  }
  const auto exactly = [&](const DeviceId& device, bool allow) {
    rules.push_back({device.block, device.major, device.minor, allow});
  };
  for (const DeviceId& device : allowed) exactly(device, true);
  for (const DeviceId& device : others) {
    if (!allowed.contains(device)) exactly(device, false);
  }
  rules.push_back({false, kNvidiaMajor, kNvidiaControl, true});
  rules.push_back({false, kNvidiaMajor, kNvidiaModeset, true});
  rules.push_back({false, kNvidiaMajor, std::nullopt, false});
  rules.push_back({false, kDriMajor, std::nullopt, false});
  if (gpus.caps_major) rules.push_back({false, *gpus.caps_major, std::nullopt, false});
  if (gpus.kfd && !allowed.contains(*gpus.kfd)) exactly(*gpus.kfd, false);
  return rules;
}

}  // namespace berth::cgroup
