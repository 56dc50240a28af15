#include "job/found_gpus.h"

#include <algorithm>
#include <optional>

#include "job/memory.h"

namespace berth::job {
namespace {

using cluster::Device;
using Found = std::span<const wire::GpuFound>;

/// Which found GPU each device is; nullopt when not every one has its own.
std::optional<std::vector<std::size_t>> match(const std::vector<Device>& devices, Found found) {
  std::vector<std::size_t> out;
  Bits used;
  for (const Device& device : devices) {
    std::optional<std::size_t> at;
    for (std::size_t i = 0; i < found.size() && !at; ++i) {
      const bool file = device.file.empty() || device.file == found[i].file();
      const bool type = device.type.empty() || device.type == found[i].type();
      if (!used.test(i) && file && type) at = i;
    }
    if (!at) return std::nullopt;
    used.set(*at);
    out.push_back(*at);
  }
  return out;
}

Bits sockets_of(const wire::GpuFound& found, std::uint32_t sockets) {
  Bits out;
  for (const std::uint32_t socket : found.sockets()) {
    if (socket < sockets) out.set(socket);
  }
  return out;
}

/// Links between the devices, in their order; empty when not all of them are known.
std::vector<int> links_of(const wire::GpuFound& found, const std::vector<std::size_t>& order) {
  std::vector<int> out;
  for (const std::size_t other : order) {
    if (other >= static_cast<std::size_t>(found.links_size())) return {};
    out.push_back(found.links(static_cast<int>(other)));
  }
  return out;
}

/// Puts devices, and the shares of them, into the order of the machine.
void reorder(cluster::Node& node, std::vector<std::size_t>& order) {
  std::vector<std::size_t> places(order.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::ranges::sort(places, {}, [&](std::size_t i) { return order[i]; });
  for (cluster::Gres& gres : node.gres) {
    if ((gres.name != "gpu" && !gres.shares_gpu) || gres.devices.size() != places.size()) continue;
    std::vector<Device> devices;
    for (const std::size_t from : places) devices.push_back(gres.devices[from]);
    gres.devices = std::move(devices);
  }
  std::ranges::sort(order);
}

}  // namespace

bool take_found_gpus(cluster::Node& node, Found found) {
  const auto gpus = std::ranges::find(node.gres, "gpu", &cluster::Gres::name);
  if (gpus == node.gres.end() || found.empty()) return false;
  auto order = match(gpus->devices, found);
  if (!order) return false;
  bool changed = false;
  const auto has_file = [](const Device& d) { return !d.file.empty(); };
  const auto has_links = [](const Device& d) { return !d.links.empty(); };
  if (std::ranges::none_of(gpus->devices, has_file) && !std::ranges::is_sorted(*order)) {
    reorder(node, *order);
    changed = true;
  }
  const bool parts = std::ranges::any_of(
      found, [](const wire::GpuFound& one) { return one.uuid().starts_with("MIG-"); });
  const bool links_open = std::ranges::none_of(gpus->devices, has_links);
  for (cluster::Gres& gres : node.gres) {
    if ((gres.name != "gpu" && !gres.shares_gpu) || gres.devices.size() != order->size()) continue;
    for (std::size_t i = 0; i < order->size(); ++i) {
      const wire::GpuFound& from = found[(*order)[i]];
      Device& device = gres.devices[i];
      const Device before = device;
      if (device.file.empty()) device.file = from.file();
      if (device.sockets.empty()) device.sockets = sockets_of(from, node.sockets);
      if (from.memory_mb() > 0) device.memory_mb = from.memory_mb();
      if (gres.is_told()) device.units = device.known_memory_mb();
      if (device.variables.of_vendor && !from.vendor().empty()) {
        device.variables.only(from.vendor());
      }
      if (parts || device.variables.by_uuid) device.uuid = from.uuid();
      if (links_open) device.links = links_of(from, *order);
      changed = changed || device.file != before.file || !(device.sockets == before.sockets) ||
                device.links != before.links || device.uuid != before.uuid ||
                device.memory_mb != before.memory_mb || device.variables != before.variables;
    }
  }
  return changed;
}

void State::Memory::note_gpus(cluster::NodeIndex index, const wire::NodeReport& report, Time now) {
  nodes[index].found_gpus.assign(report.gpus().begin(), report.gpus().end());
  cluster::Node trial = cluster.nodes[index];
  if (!take_found_gpus(trial, nodes[index].found_gpus)) return;
  newly_found.insert(index);
  constexpr std::size_t kSmall = 64;  // nodes: a rebuild is cheap, and a job may start at once
  if (cluster.nodes.size() <= kSmall) {
    found_tick(now);
  } else if (!found_due) {
    found_due = now + 1;
  }
}

void State::Memory::found_tick(Time) {
  found_due.reset();
  if (newly_found.empty()) return;
  for (const cluster::NodeIndex index : std::exchange(newly_found, {})) {
    take_found_gpus(cluster.nodes[index], nodes[index].found_gpus);
    touch_node(index);
  }
  rebuild_usage();
}

}  // namespace berth::job
