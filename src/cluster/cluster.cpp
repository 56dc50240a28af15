#include "cluster/cluster.h"

#include <algorithm>
#include <charconv>

#include "base/natural.h"

namespace berth::cluster {

void GpuVariables::only(std::string_view vendor) {
  cuda = vendor == "nvidia";
  rocr = vendor == "amd";
  level_zero = vendor == "intel";
  opencl = of_vendor = false;
}

std::uint64_t Device::known_memory_mb() const {
  if (memory_mb > 0) return memory_mb;
  if (!type.ends_with("gb")) return 0;
  const std::string_view name = std::string_view(type).substr(0, type.size() - 2);
  const std::size_t before = name.find_last_not_of("0123456789");
  const std::string_view digits = name.substr(before == std::string_view::npos ? 0 : before + 1);
  std::uint64_t gb = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), gb);
  return error == std::errc() && end == digits.data() + digits.size() && gb < 100000 ? gb * 1024
                                                                                     : 0;
}

bool is_one_of(std::string_view type, std::string_view wanted) {
  if (wanted.empty() || type == wanted) return true;
  while (true) {
    const std::size_t bar = wanted.find('|');
    if (wanted.substr(0, bar) == type) return !type.empty();
    if (bar == std::string_view::npos) return false;
    wanted.remove_prefix(bar + 1);
  }
}

std::uint64_t Gres::total() const {
  return total_of("");
}

std::uint64_t Gres::total_of(std::string_view type) const {
  std::uint64_t sum = 0;
  for (const Device& device : devices) {
    if (is_one_of(device.type, type)) sum += device.units;
  }
  return sum;
}

Bits Node::threads_of(const Bits& cores) const {
  Bits threads;
  cores.each([&](std::size_t core) {
    for (std::uint32_t t = 0; t < threads_per_core; ++t) threads.set(core * threads_per_core + t);
  });
  return threads;
}

const Gres* Node::find_gres(std::string_view wanted) const {
  const auto at = std::ranges::find(gres, wanted, &Gres::name);
  return at == gres.end() ? nullptr : &*at;
}

void add_gpu_memory(Node& node) {
  const Gres* gpus = node.find_gres("gpu");
  if (gpus == nullptr || gpus->counted) return;
  Gres memory;
  memory.name = text::kGpuMemory;
  memory.shares_gpu = true;
  memory.devices = gpus->devices;
  for (Device& device : memory.devices) device.units = device.known_memory_mb();
  node.gres.push_back(std::move(memory));
}

bool Node::has_feature(std::string_view feature) const {
  return std::ranges::find(features, feature) != features.end();
}

const Partition* Cluster::find_partition(std::string_view wanted) const {
  const auto at = std::ranges::find(partitions, wanted, &Partition::name);
  return at == partitions.end() ? nullptr : &*at;
}

const Partition* Cluster::default_partition() const {
  const auto at = std::ranges::find(partitions, true, &Partition::is_default);
  return at == partitions.end() ? nullptr : &*at;
}

std::optional<NodeIndex> Cluster::find_node(std::string_view wanted) const {
  const auto at = by_name_.find(wanted);
  if (at == by_name_.end()) return std::nullopt;
  return at->second;
}

bool Cluster::equal_weights() const {
  return std::ranges::all_of(nodes,
                             [&](const Node& node) { return node.weight == nodes.front().weight; });
}

void Cluster::index_nodes() {
  std::ranges::sort(nodes, natural_less, &Node::name);
  by_name_.clear();
  most_threads_ = 1;
  least_memory_mb_ = nodes.empty() ? 0 : nodes.front().usable_memory_mb();
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    by_name_.emplace(nodes[i].name, i);
    most_threads_ = std::max(most_threads_, nodes[i].threads_per_core);
    least_memory_mb_ = std::min(least_memory_mb_, nodes[i].usable_memory_mb());
  }
}

}  // namespace berth::cluster
