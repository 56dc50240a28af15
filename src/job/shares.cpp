// Shares with names instead of indices, and back; and shares as TRES text.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "job/launch.h"
#include "job/ranges.h"

namespace berth::job {
namespace {

std::string megabytes(std::uint64_t mb) {
  if (mb > 0 && mb % 1048576 == 0) return fmt::format("{}T", mb / 1048576);
  if (mb > 0 && mb % 1024 == 0) return fmt::format("{}G", mb / 1024);
  return fmt::format("{}M", mb);
}

}  // namespace

wire::NodeShare to_wire(const cluster::Cluster& cluster, const cluster::NodeShare& share) {
  wire::NodeShare out;
  out.set_node(cluster.nodes[share.node].name);
  out.set_cores(share.cores.ranges());
  out.set_cpus(share.cpus);
  out.set_usable_cpus(share.usable_cpus);
  out.set_tasks(share.tasks);
  out.set_memory_mb(share.memory_mb);
  for (const cluster::GresShare& gres : share.gres) {
    wire::GresShare* one = out.add_gres();
    one->set_name(gres.name);
    for (const std::uint64_t units : gres.units) one->add_units(units);
  }
  return out;
}

wire::Allocation to_wire(const cluster::Cluster& cluster, const cluster::Allocation& allocation) {
  wire::Allocation out;
  out.set_whole_nodes(allocation.whole_nodes);
  for (const cluster::NodeShare& share : allocation.nodes)
    *out.add_nodes() = to_wire(cluster, share);
  return out;
}

cluster::NodeShare from_wire(const wire::NodeShare& share, cluster::NodeIndex index) {
  cluster::NodeShare out;
  out.node = index;
  out.cores = parse_ranges(share.cores()).value_or(Bits());
  out.cpus = share.cpus();
  out.usable_cpus = share.usable_cpus();
  out.tasks = share.tasks();
  out.memory_mb = share.memory_mb();
  for (const wire::GresShare& gres : share.gres()) {
    out.gres.push_back({gres.name(), {gres.units().begin(), gres.units().end()}});
  }
  return out;
}

cluster::Allocation from_wire(const cluster::Cluster& cluster, const wire::Allocation& allocation) {
  cluster::Allocation out;
  out.whole_nodes = allocation.whole_nodes();
  for (const wire::NodeShare& share : allocation.nodes()) {
    if (const auto index = cluster.find_node(share.node())) {
      out.nodes.push_back(from_wire(share, *index));
    }
  }
  std::ranges::sort(out.nodes, {}, &cluster::NodeShare::node);
  return out;
}

std::string tres_text(const cluster::Cluster& cluster, const cluster::Allocation& allocation,
                      bool billing) {
  std::uint64_t cpus = 0;
  std::uint64_t memory = 0;
  std::map<std::string, std::uint64_t> gres;
  for (const cluster::NodeShare& share : allocation.nodes) {
    cpus += share.cpus;
    memory += share.memory_mb;
    const cluster::Node& node = cluster.nodes[share.node];
    for (const cluster::GresShare& one : share.gres) {
      gres["gres/" + one.name] += one.total();
      if (one.name == text::kGpuMemory) continue;
      const cluster::Gres* known = node.find_gres(one.name);
      for (std::size_t d = 0; known != nullptr && d < one.units.size(); ++d) {
        if (d >= known->devices.size() || known->devices[d].type.empty()) continue;
        if (one.units[d] > 0)
          gres[fmt::format("gres/{}:{}", one.name, known->devices[d].type)] += one.units[d];
      }
    }
  }
  std::string out = fmt::format("cpu={}", cpus);
  if (memory > 0) out += ",mem=" + megabytes(memory);
  out += fmt::format(",node={}", allocation.nodes.size());
  if (billing) out += fmt::format(",billing={}", cpus);
  for (const auto& [name, count] : gres) {
    const bool size = name.ends_with(text::kGpuMemory);
    out += fmt::format(",{}={}", name, size ? megabytes(count) : std::to_string(count));
  }
  return out;
}

}  // namespace berth::job
