#include "node/hardware_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

#include "net/paths.h"
#include "node/inventory.h"

namespace berth::node {
namespace {

std::string gres_counts(const device::Machine& machine) {
  std::vector<std::pair<std::string, int>> types;
  for (const device::Gpu& gpu : machine.gpus) {
    const auto at = std::ranges::find(types, gpu.type, &std::pair<std::string, int>::first);
    if (at == types.end()) {
      types.emplace_back(gpu.type, 1);
    } else {
      ++at->second;
    }
  }
  std::string out;
  for (const auto& [type, count] : types) {
    out += out.empty() ? " Gres=" : ",";
    out += type.empty() ? fmt::format("gpu:{}", count) : fmt::format("gpu:{}:{}", type, count);
  }
  return out;
}

/// "UpTime=3-01:02:03"
std::string up_time(const device::Machine& machine) {
  const std::int64_t seconds = std::max<std::int64_t>(0, std::time(nullptr) - machine.boot_time);
  return fmt::format("UpTime={}-{:02}:{:02}:{:02}\n", seconds / 86400, seconds / 3600 % 24,
                     seconds / 60 % 60, seconds % 60);
}

std::string node_line(const device::Machine& machine, const std::string& name) {
  return fmt::format(
      "NodeName={} CPUs={} Boards=1 SocketsPerBoard={} CoresPerSocket={} ThreadsPerCore={} "
      "RealMemory={}{}\n",
      name, machine.cpus(), machine.sockets, machine.cores_per_socket, machine.threads_per_core,
      machine.memory_mb, gres_counts(machine));
}

std::string_view environment_flag(device::Vendor vendor) {
  switch (vendor) {
    case device::Vendor::amd:
      return "ENV_RSMI";
    case device::Vendor::intel:
      return "ENV_ONEAPI";
    case device::Vendor::nvidia:
      break;
  }
  return "ENV_NVML";
}

std::string gres_line(const GresItem& item, std::size_t index, std::uint32_t cores) {
  std::string out = fmt::format("Gres Name={}", item.name);
  std::vector<std::string_view> flags;
  if (!item.type.empty()) out += fmt::format(" Type={}", item.type);
  out += fmt::format(" Count={}", item.count);
  if (item.name == "gpu") out += fmt::format(" Index={}", index);
  if (!item.files.empty()) {
    out += fmt::format(" File={}", fmt::join(item.files, ","));
    flags.emplace_back("HAS_FILE");
  }
  if (!item.type.empty()) flags.emplace_back("HAS_TYPE");
  if (item.gpu != nullptr) flags.push_back(environment_flag(item.gpu->vendor));
  if (item.cores.any()) out += fmt::format(" Cores={} CoreCnt={}", item.cores.ranges(), cores);
  if (!item.links.empty()) out += fmt::format(" Links={}", fmt::join(item.links, ","));
  if (item.gpu != nullptr && !item.gpu->uuid.empty()) {
    out += fmt::format(" UniqueId={}", item.gpu->uuid);
  }
  return out + fmt::format(" Flags={}\n", fmt::join(flags, ","));
}

std::string gres_lines(const Gres& gres, const device::Machine& machine) {
  std::string out;
  std::size_t index = 0;
  for (const GresItem& item : gres.items) {
    out += gres_line(item, index, machine.sockets * machine.cores_per_socket);
    ++index;
  }
  index = 0;
  for (const GresItem& item : gres.items) {
    if (!item.missing.empty()) out += fmt::format("# GPU {} is missing: {}\n", index, item.missing);
    ++index;
  }
  for (const std::string& one : gres.differences) out += fmt::format("# {}\n", one);
  return out;
}

}  // namespace

Result<std::string> hardware_text(const Options& given) {
  Options options = given;
  if (options.print_hardware) {
    const device::Machine machine = device::this_machine();
    std::string notes;
    for (const std::string& note : machine.notes) notes += fmt::format("# {}\n", note);
    const std::string name = options.name.empty() ? machine.host : options.name;
    return node_line(machine, name) + up_time(machine) + notes;
  }
  if (options.conf.empty()) options.conf = net::find_conf();
  if (options.conf.empty()) {
    const device::Machine machine = device::this_machine();
    return gres_lines(resolve_gres(machine, {}, machine.host), machine);
  }
  const auto inventory = take_inventory(options);
  if (!inventory) return pass(inventory.error());
  return gres_lines(inventory->gres, inventory->machine);
}

}  // namespace berth::node
