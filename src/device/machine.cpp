// CPUs come from hwloc, which knows about cgroups and odd numbering; the rest from the kernel.
#include "device/machine.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "device/cpus.h"
#include "device/detect.h"
#include "device/kernel_files.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::device {
namespace {

/// MemTotal, or what the container this runs in may use.
std::uint64_t memory_mb(const Places& places) {
  std::uint64_t kb = 0;
  const std::string meminfo = read_text(places.proc + "/meminfo");
  for (const std::string_view line : text::split(meminfo, '\n')) {
    if (!line.starts_with("MemTotal:")) continue;
    const std::string_view rest = text::trim(line.substr(line.find(':') + 1));
    kb = text::parse_number(rest.substr(0, rest.find(' ')), UINT64_MAX / 2).value_or(0);
  }
  const std::string limit = read_text(places.sys + "/fs/cgroup/memory.max");
  if (const auto bytes = text::parse_number(text::trim(limit), UINT64_MAX / 2)) {
    kb = kb == 0 ? *bytes / 1024 : std::min(kb, *bytes / 1024);
  }
  return std::max<std::uint64_t>(1, kb / 1024);
}

std::uint64_t disk_mb(const std::string& path) {
  struct statvfs disk{};
  if (statvfs(path.c_str(), &disk) != 0) return 0;
  return disk.f_blocks * (disk.f_frsize / 1024) / 1024;
}

std::int64_t boot_time(const Places& places) {
  const std::string stat = read_text(places.proc + "/stat");
  for (const std::string_view line : text::split(stat, '\n')) {
    if (line.starts_with("btime ")) {
      return static_cast<std::int64_t>(
          text::parse_number(text::trim(line.substr(6)), INT64_MAX).value_or(0));
    }
  }
  return 0;
}

void name_system(Machine& machine) {
  utsname name{};
  if (uname(&name) != 0) return;
  machine.arch = name.machine;
  machine.os = fmt::format("{} {} {}", name.sysname, name.release, name.version);
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  const std::string full = name.data();
  return full.substr(0, full.find('.'));
}

Bits Machine::os_cpus(const Bits& ids) const {
  Bits out;
  for (std::size_t id = 0; id < os_numbers.size(); ++id) {
    if (ids.test(id)) out.set(os_numbers[id]);
  }
  return out;
}

Machine this_machine(const Search& search) {
  const Places& places = search.places;
  Machine machine;
  machine.host = host_name();
  machine.memory_mb = memory_mb(places);
  machine.tmp_disk_mb = disk_mb(places.tmp);
  machine.boot_time = boot_time(places);
  name_system(machine);
  const CpuMap cpus = find_cpus();
  machine.sockets = cpus.sockets;
  machine.cores_per_socket = cpus.cores_per_socket;
  machine.threads_per_core = cpus.threads_per_core;
  machine.os_numbers = cpus.os_numbers;
  machine.notes = cpus.notes;
  detect_gpus(search, cpus, machine);
  return machine;
}

Machine pretended(const cluster::Node& node) {
  Machine machine;
  machine.host = host_name();
  machine.sockets = node.sockets;
  machine.cores_per_socket = node.cores_per_socket;
  machine.threads_per_core = node.threads_per_core;
  machine.memory_mb = node.memory_mb;
  machine.tmp_disk_mb = node.tmp_disk_mb;
  machine.boot_time = boot_time({});
  name_system(machine);
  if (const cluster::Gres* gpus = node.find_gres("gpu")) {
    for (const cluster::Device& device : gpus->devices) {
      Gpu gpu;
      gpu.minor = static_cast<std::uint32_t>(machine.gpus.size());
      gpu.type = device.type;
      gpu.file = device.file;
      gpu.sockets = device.sockets;
      gpu.links = device.links;
      machine.gpus.push_back(std::move(gpu));
    }
  }
  return machine;
}

}  // namespace berth::device
