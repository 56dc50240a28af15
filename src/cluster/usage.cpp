#include "cluster/usage.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace berth::cluster {
namespace {

void append(std::string& key, std::uint64_t value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append(std::string& key, const Bits& bits) {
  bits.each([&](std::size_t i) { append(key, i); });
  append(key, ~std::uint64_t{0});
}

/// Everything about a node's hardware that placement reads.
std::string hardware_key(const Node& node) {
  std::string key;
  append(key, node.sockets);
  append(key, node.cores_per_socket);
  append(key, node.threads_per_core);
  append(key, node.memory_mb);
  append(key, node.reserved_memory_mb);
  append(key, node.tmp_disk_mb);
  append(key, node.reserved_cores);
  append(key, node.gpu_cores);
  for (const Gres& gres : node.gres) {
    key += gres.name;
    append(key, (gres.one_sharing ? 8U : 0U) | (gres.shares_gpu ? 4U : 0U) |
                    (gres.counted ? 2U : 0U) | (gres.given_explicitly ? 1U : 0U));
    for (const Device& device : gres.devices) {
      key += device.type;
      append(key, device.units);
      append(key, device.memory_mb);
      append(key, device.sockets);
      for (int links : device.links) append(key, static_cast<std::uint64_t>(links));
      append(key, ~std::uint64_t{1});
    }
  }
  return key;
}

/// `out`: GPUs that are out of service.
void work_out_blocked(const Node& node, const std::map<std::uint32_t, std::string>& out,
                      NodeUsage& usage) {
  usage.blocked.resize(node.gres.size());
  usage.open_devices.assign(node.gres.size());
  for (std::size_t g = 0; g < node.gres.size(); ++g) {
    const Gres& gres = node.gres[g];
    usage.blocked[g].clear();
    const bool of_gpus = !gres.counted && (gres.name == "gpu" || gres.shares_gpu);
    for (std::size_t d = 0; d < gres.devices.size(); ++d) {
      bool blocked = usage.gres[g][d] >= gres.devices[d].units ||
                     (of_gpus && out.contains(static_cast<std::uint32_t>(d)));
      for (std::size_t one = 0; one < gres.devices.size() && gres.one_sharing && !blocked; ++one) {
        blocked = one != d && usage.gres[g][one] > 0;
      }
      for (std::size_t other = 0; other < node.gres.size() && !blocked; ++other) {
        const Gres& rival = node.gres[other];
        const bool both_on_gpu =
            (gres.name == "gpu" && rival.shares_gpu) ||
            (gres.shares_gpu && (rival.name == "gpu" || (rival.shares_gpu && other != g)));
        blocked = both_on_gpu && d < usage.gres[other].size() && usage.gres[other][d] > 0;
      }
      if (blocked) usage.blocked[g].set(d);
    }
    usage.open_devices[g] =
        static_cast<std::uint32_t>(gres.devices.size() - usage.blocked[g].count());
  }
}

}  // namespace

Bits GresShare::devices() const {
  Bits out;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (units[i] > 0) out.set(i);
  }
  return out;
}

std::uint64_t GresShare::total() const {
  return std::accumulate(units.begin(), units.end(), std::uint64_t{0});
}

const GresShare* NodeShare::find(std::string_view name) const {
  const auto at = std::ranges::find(gres, name, &GresShare::name);
  return at == gres.end() ? nullptr : &*at;
}

Bits NodeShare::gpus() const {
  Bits out;
  for (const GresShare& share : gres) {
    if (share.name == "gpu" || text::is_part_of_gpu(share.name)) out |= share.devices();
  }
  return out;
}

void NodeUsage::bind_cores(const NodeShare& share) {
  if (share.bound == 0) return;
  if (bounded.size() < share.bound) bounded.resize(share.bound);
  bounded[share.bound - 1] |= share.cores;
}

std::uint16_t bound_of(const Cluster& cluster, std::string_view partition) {
  const Partition* found = cluster.find_partition(partition);
  if (found == nullptr || (!found->max_cpus_per_node && !found->max_cpus_per_socket)) return 0;
  return static_cast<std::uint16_t>(found - cluster.partitions.data() + 1);
}

void bind_to(const Cluster& cluster, std::string_view partition, Allocation& allocation) {
  const std::uint16_t bound = bound_of(cluster, partition);
  for (NodeShare& share : allocation.nodes) share.bound = bound;
}

Usage::Usage(const Cluster& cluster) : cluster_(&cluster) {
  nodes_.resize(cluster.nodes.size());
  states_.resize(cluster.nodes.size());
  hardware_class_.resize(cluster.nodes.size());
  std::map<std::string, std::uint32_t> classes;
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    const Node& node = cluster.nodes[i];
    for (const Gres& gres : node.gres) nodes_[i].gres.emplace_back(gres.devices.size(), 0);
    const auto next = static_cast<std::uint32_t>(classes.size());
    const auto [at, added] = classes.emplace(hardware_key(node), next);
    hardware_class_[i] = at->second;
    if (added) {
      // What is out of service may come back, and stands for no other node.
      work_out_blocked(node, {}, nodes_[i]);
      pristine_.push_back(nodes_[i]);
      examples_.push_back(i);
    }
    refresh_blocked(node, nodes_[i]);
    refresh_state(i);
  }
  std::vector<Room> rooms;
  rooms.reserve(nodes_.size());
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    rooms.push_back(cluster.nodes[i].usable ? room_of(cluster.nodes[i], nodes_[i]) : Room{});
  }
  rooms_ = RoomTree(std::move(rooms));
  changes_.keep(nodes_.size() + 64);
}

void Usage::refresh_room(NodeIndex index) {
  const Node& node = cluster_->nodes[index];
  const Room room = node.usable ? room_of(node, nodes_[index]) : Room{};
  if (!rooms_.at(index).holds(room)) grown_.push_back(index);
  rooms_.set(index, room);
  changes_.add(index);
  if (grown_.size() > 4 * nodes_.size() + 64) {  // nobody asks, or each node has grown
    std::ranges::sort(grown_);
    grown_.erase(std::ranges::unique(grown_).begin(), grown_.end());
  }
}

std::vector<NodeIndex> Usage::take_grown() {
  return std::exchange(grown_, {});
}

bool is_free(const Node& node, const NodeUsage& used, const NodeShare& share, bool alone,
             bool memory_counts, bool again) {
  if (used.closed || (alone && !used.idle())) return false;
  if (used.cores.intersects(share.cores)) return false;
  if (share.cores.any() && share.cores.last() >= node.cores()) return false;
  if (memory_counts && used.memory_mb + share.memory_mb > node.usable_memory_mb()) return false;
  return std::ranges::all_of(share.gres, [&](const GresShare& taken) {
    const Gres* known = node.find_gres(taken.name);
    if (known == nullptr || known->devices.size() != taken.units.size()) return false;
    const auto g = static_cast<std::size_t>(known - node.gres.data());
    for (std::size_t d = 0; d < taken.units.size(); ++d) {
      if (taken.units[d] == 0) continue;
      if (!again && used.blocked[g].test(d)) return false;
      if (used.gres[g][d] + taken.units[d] > known->devices[d].units) return false;
    }
    return true;
  });
}

Room room_of(const Node& node, const NodeUsage& usage, bool closed_too) {
  if (usage.closed && !closed_too) return {};
  Room room;
  const std::size_t taken =
      node.reserved_cores.any() ? (usage.cores | node.reserved_cores).count() : usage.cores.count();
  room.cores = node.cores() - static_cast<std::uint32_t>(taken);
  const std::uint64_t all = node.usable_memory_mb();
  room.memory_mb = all - std::min(all, usage.memory_mb);
  room.idle = usage.idle() ? 1 : 0;
  for (std::size_t g = 0; g < node.gres.size(); ++g) {
    const Gres& gres = node.gres[g];
    if (gres.name != "gpu") continue;
    if (!gres.counted) {
      room.gpus = usage.open_devices[g];
      continue;
    }
    for (std::size_t d = 0; d < gres.devices.size(); ++d) {
      room.gpus += static_cast<std::uint32_t>(gres.devices[d].units - usage.gres[g][d]);
    }
  }
  return room;
}

void refresh_blocked(const Node& node, NodeUsage& usage) {
  work_out_blocked(node, node.gpus_out, usage);
}

void Usage::refresh_gpus_out(NodeIndex index) {
  refresh_blocked(cluster_->nodes[index], nodes_[index]);
  refresh_state(index);
  refresh_room(index);
  forget_old_states();
}

void Usage::refresh_state(NodeIndex node) {
  const NodeUsage& usage = nodes_[node];
  usage.policy_mark = 0;
  std::string key;
  append(key, hardware_class_[node]);
  append(key, usage.memory_mb);
  append(key, (usage.closed ? 2U : 0U) | (usage.jobs > 0 ? 1U : 0U));
  append(key, usage.cores);
  for (const auto& devices : usage.gres) {
    for (std::uint64_t units : devices) append(key, units);
  }
  for (const auto& [gpu, why] : cluster_->nodes[node].gpus_out) append(key, gpu);
  append(key, ~std::uint64_t{0});
  for (std::size_t i = 0; i < usage.bounded.size(); ++i) {
    if (!usage.bounded[i].any()) continue;
    append(key, i);
    append(key, usage.bounded[i]);
  }
  const auto [at, added] = state_ids_.emplace(std::move(key), state_count_);
  if (added) ++state_count_;
  states_[node] = at->second;
}

void Usage::change(const Allocation& allocation, bool taking) {
  for (const NodeShare& share : allocation.nodes) {
    NodeUsage& usage = nodes_[share.node];
    const Node& node = cluster_->nodes[share.node];
    if (taking) {
      assert(!usage.cores.intersects(share.cores));
      usage.cores |= share.cores;
      usage.bind_cores(share);
      usage.memory_mb += share.memory_mb;
      ++usage.jobs;
      usage.closed = usage.closed || allocation.whole_nodes;
    } else {
      assert(usage.cores.contains(share.cores) && usage.memory_mb >= share.memory_mb);
      usage.cores -= share.cores;
      for (Bits& bounded : usage.bounded) bounded -= share.cores;
      usage.memory_mb -= share.memory_mb;
      --usage.jobs;
      if (allocation.whole_nodes) usage.closed = false;
    }
    for (const GresShare& gres : share.gres) {
      const auto position = static_cast<std::size_t>(node.find_gres(gres.name) - node.gres.data());
      for (std::size_t i = 0; i < gres.units.size(); ++i) {
        std::uint64_t& taken = usage.gres[position][i];
        if (taking) {
          const Gres& known = node.gres[position];
          assert(known.is_told() || taken + gres.units[i] <= known.devices[i].units);
          taken += gres.units[i];
        } else {
          assert(taken >= gres.units[i]);
          taken -= gres.units[i];
        }
      }
    }
    refresh_blocked(node, usage);
    refresh_state(share.node);
    refresh_room(share.node);
  }
  forget_old_states();
}

/// States that no node is in any more are forgotten from time to time, so that a long life with
/// many different loads stays as small as the cluster.
void Usage::forget_old_states() {
  if (state_ids_.size() <= 4 * nodes_.size() + 64) return;
  state_ids_.clear();
  state_count_ = 0;
  for (NodeIndex i = 0; i < nodes_.size(); ++i) refresh_state(i);
}

NodeUsage& Overlay::put(NodeIndex node) {
  std::int32_t& slot = slots_[node];
  if (slot < 0) {
    slot = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back(node);
    if (usages_.size() < nodes_.size()) usages_.emplace_back();
  }
  return usages_[static_cast<std::size_t>(slot)];
}

void Overlay::clear() {
  for (const NodeIndex node : nodes_) slots_[node] = -1;
  nodes_.clear();
}

Demand demand_of(const Node& node, const NodeShare& share) {
  Demand out;
  out.cpu_milli = std::uint64_t{share.cpus} * 1000;
  out.memory_mb = share.memory_mb;
  for (const GresShare& taken : share.gres) {
    const Gres* gres = node.find_gres(taken.name);
    if (gres == nullptr) continue;
    if (gres->name == "gpu") out.gpus = static_cast<std::uint32_t>(taken.total());
    for (std::size_t d = 0; gres->shares_gpu && d < taken.units.size(); ++d) {
      if (taken.units[d] == 0) continue;
      const std::uint64_t all = gres->devices[d].units;
      const std::uint64_t milli = all == 0 ? 0 : (taken.units[d] * 1000 + all - 1) / all;
      out.share_milli = std::max(out.share_milli, static_cast<std::uint32_t>(milli));
    }
  }
  if (out.share_milli >= 1000) out.gpus = std::max(out.gpus, 1U);
  if (out.gpus > 0) out.share_milli = 0;
  return out;
}

void Usage::take(const Allocation& allocation) {
  change(allocation, true);
  if (cluster_->settings.placement != Placement::keep_whole) return;
  for (const NodeShare& share : allocation.nodes) {
    typical_.note(demand_of(cluster_->nodes[share.node], share));
  }
}
void Usage::release(const Allocation& allocation) {
  change(allocation, false);
}

}  // namespace berth::cluster
