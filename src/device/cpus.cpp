#include "device/cpus.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

// hwloc asks udev about disks only, which are not looked at here; Debian has no static libudev.
extern "C" {
struct udev* udev_new() {
  return nullptr;
}
struct udev* udev_unref(struct udev*) {
  return nullptr;
}
struct udev_device* udev_device_new_from_subsystem_sysname(struct udev*, const char*, const char*) {
  return nullptr;
}
const char* udev_device_get_property_value(struct udev_device*, const char*) {
  return nullptr;
}
struct udev_device* udev_device_unref(struct udev_device*) {
  return nullptr;
}
}

namespace berth::device {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

std::uint32_t index_of(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t unit) {
  const hwloc_obj_t above = hwloc_get_ancestor_obj_by_type(topology, type, unit);
  return above == nullptr ? 0 : above->logical_index;
}

/// hwloc looks for plugins when the first topology is made; a static program cannot load them.
int init_without_plugins(hwloc_topology_t* topology) {
  constexpr const char* kPath = "HWLOC_PLUGINS_PATH";
  const char* before = getenv(kPath);
  const std::string kept = before == nullptr ? "" : before;
  setenv(kPath, "", 1);
  const int result = hwloc_topology_init(topology);
  if (before == nullptr) {
    unsetenv(kPath);
  } else {
    setenv(kPath, kept.c_str(), 1);
  }
  return result;
}

std::vector<Thread> threads_found() {
  hwloc_topology_t raw = nullptr;
  if (init_without_plugins(&raw) != 0) return {};
  const Topology topology(raw);
  if (hwloc_topology_load(raw) != 0) return {};
  const bool has_cores = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE) > 0;
  std::vector<Thread> threads;
  for (hwloc_obj_t unit = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_PU, nullptr); unit != nullptr;
       unit = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_PU, unit)) {
    Thread thread;
    thread.socket = index_of(raw, HWLOC_OBJ_PACKAGE, unit);
    thread.core = has_cores ? index_of(raw, HWLOC_OBJ_CORE, unit) : unit->logical_index;
    thread.os_number = unit->os_index;
    threads.push_back(thread);
  }
  return threads;
}

}  // namespace

CpuMap shape_of(std::vector<Thread> threads) {
  CpuMap map;
  std::ranges::sort(threads, {},
                    [](const Thread& t) { return std::tuple(t.socket, t.core, t.os_number); });
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> sockets;  // core → threads
  for (const Thread& thread : threads) {
    ++sockets[thread.socket][thread.core];
    map.os_numbers.push_back(thread.os_number);
  }
  if (threads.empty()) {
    map.os_numbers = {0};
    return map;
  }
  const std::size_t cores = sockets.begin()->second.size();
  const std::uint32_t in_core = sockets.begin()->second.begin()->second;
  const bool regular = std::ranges::all_of(sockets, [&](const auto& socket) {
    return socket.second.size() == cores &&
           std::ranges::all_of(socket.second,
                               [&](const auto& core) { return core.second == in_core; });
  });
  if (regular) {
    map.sockets = static_cast<std::uint32_t>(sockets.size());
    map.cores_per_socket = static_cast<std::uint32_t>(cores);
    map.threads_per_core = in_core;
    return map;
  }
  map.cores_per_socket = static_cast<std::uint32_t>(threads.size());
  map.notes.push_back(fmt::format(
      "The {} hardware threads are not shared evenly by cores and sockets; each is taken "
      "as a core of one socket",
      threads.size()));
  return map;
}

Bits sockets_of(const Bits& os_cpus, const CpuMap& cpus) {
  Bits sockets;
  const std::size_t in_socket = std::size_t{cpus.cores_per_socket} * cpus.threads_per_core;
  for (std::size_t id = 0; id < cpus.os_numbers.size(); ++id) {
    if (os_cpus.test(cpus.os_numbers[id])) sockets.set(id / in_socket);
  }
  return sockets;
}

CpuMap find_cpus() {
  std::vector<Thread> threads = threads_found();
  if (!threads.empty()) return shape_of(std::move(threads));
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(std::max(1L, online)); ++i) {
    threads.push_back({0, i, i});
  }
  CpuMap map = shape_of(std::move(threads));
  map.notes.emplace_back("hwloc could not read the machine's layout; each CPU is taken as a core");
  return map;
}

}  // namespace berth::device
