// Which devices a job gets on its nodes, once its cores are known (placement-jobs.md §8).
#include <algorithm>
#include <numeric>

#include "place/share.h"

namespace berth::place {
namespace {

using cluster::Device;
using cluster::Gres;
using cluster::GresShare;
using cluster::Node;
using cluster::NodeShare;
using cluster::NodeUsage;

/// Picks whole devices of one kind on one node. Where links are known the list of candidates is
/// sorted again after each pick, fewest links to the picked ones first, and read on from its second
/// entry: that is how Slurm does it, and the recordings depend on it.
class Picker {
 public:
  /// `well_linked`: berth's own policy, which looks for the devices with most links instead.
  Picker(const Node& node, const NodeUsage& usage, const Gres& gres, const DeviceAsk& want,
         GresShare& share, bool well_linked)
      : node_(node), gres_(gres), share_(share) {
    share_.units.resize(gres.devices.size(), 0);
    free_.resize(gres.devices.size());
    list_.resize(gres.devices.size());
    std::iota(list_.begin(), list_.end(), std::size_t{0});
    linked_ = !gres.devices.empty();
    for (std::size_t d = 0; d < gres.devices.size(); ++d) {
      free_[d] = want.takes(gres.devices[d]) ? free_units(node, usage, gres, d) : 0;
      if (share_.units[d] > 0) free_[d] -= std::min(free_[d], share_.units[d]);
      linked_ = linked_ && gres.devices[d].links.size() == gres.devices.size();
    }
    well_linked_ = well_linked && linked_;
    linked_ = linked_ && !well_linked_;
  }

  [[nodiscard]] bool linked() const { return linked_; }

  /// Up to `count` units of devices for which `where` holds; returns how many were taken.
  template <class Where>
  std::uint64_t pick(std::uint64_t count, Where where) {
    if (well_linked_) return pick_well_linked(count, where);
    std::uint64_t got = 0;
    for (std::size_t at = 0; at < list_.size() && got < count;) {
      const std::size_t d = list_[at];
      if (free_[d] == 0 || !where(gres_.devices[d])) {
        ++at;
        continue;
      }
      const std::uint64_t units = std::min(free_[d], count - got);
      take(d, units);
      got += units;
      if (linked_) {
        resort();
        at = 1;
      } else {
        ++at;
      }
    }
    return got;
  }

  /// Every free device for which `where` holds.
  template <class Where>
  std::uint64_t take_all(Where where) {
    std::uint64_t got = 0;
    for (std::size_t d = 0; d < free_.size(); ++d) {
      if (free_[d] == 0 || !where(gres_.devices[d])) continue;
      got += free_[d];
      take(d, free_[d]);
    }
    return got;
  }

  std::uint64_t pick_on_socket(std::uint32_t socket, std::uint64_t count) {
    return pick(count,
                [&](const Device& d) { return !d.any_socket(node_.sockets) && d.near(socket); });
  }
  std::uint64_t pick_any_socket(std::uint64_t count) {
    return pick(count, [&](const Device& d) { return d.any_socket(node_.sockets); });
  }
  std::uint64_t pick_everywhere(std::uint64_t count) {
    std::uint64_t got = pick_any_socket(count);
    for (std::uint32_t s = 0; s < node_.sockets && got < count; ++s) {
      got += pick_on_socket(s, count - got);
    }
    return got;
  }

  void give_back(std::size_t d) {
    free_[d] += share_.units[d];
    share_.units[d] = 0;
  }

 private:
  void take(std::size_t d, std::uint64_t units) {
    free_[d] -= units;
    share_.units[d] += units;
  }

  /// One device after the other, each the one with most links to those picked and, among equals,
  /// with fewest to those left free. The first is each of them in turn; the best set is taken.
  template <class Where>
  std::uint64_t pick_well_linked(std::uint64_t count, Where where) {
    std::vector<std::size_t> open;
    std::vector<std::size_t> held;
    for (std::size_t d = 0; d < free_.size(); ++d) {
      if (share_.units[d] > 0) held.push_back(d);
      if (free_[d] > 0 && where(gres_.devices[d])) open.push_back(d);
    }
    const std::size_t wanted = std::min<std::size_t>(count, open.size());
    if (wanted == 0) return 0;
    std::vector<std::size_t> best;
    long best_links = -1;
    for (std::size_t seed : open) {
      std::vector<std::size_t> chosen = held;
      std::vector<std::size_t> left = open;
      long links = 0;
      for (std::size_t n = 0; n < wanted; ++n) {
        const std::size_t next = n == 0 && held.empty() ? seed : most_linked(left, chosen);
        links += links_to(next, chosen);
        std::erase(left, next);
        chosen.push_back(next);
      }
      if (links > best_links) {
        best_links = links;
        best.assign(chosen.begin() + static_cast<std::ptrdiff_t>(held.size()), chosen.end());
      }
      if (!held.empty()) break;  // the first one is not free to choose
    }
    for (std::size_t d : best) take(d, 1);
    return wanted;
  }

  [[nodiscard]] long links_to(std::size_t device, const std::vector<std::size_t>& others) const {
    long links = 0;
    for (std::size_t other : others) {
      if (other != device) links += gres_.devices[device].links[other];
    }
    return links;
  }
  [[nodiscard]] std::size_t most_linked(const std::vector<std::size_t>& open,
                                        const std::vector<std::size_t>& chosen) const {
    return *std::ranges::max_element(open, {}, [&](std::size_t d) {
      return std::pair(links_to(d, chosen), -links_to(d, open));
    });
  }

  void resort() {
    std::vector<long> links(list_.size(), 0);
    for (std::size_t d = 0; d < list_.size(); ++d) {
      for (std::size_t p = 0; p < share_.units.size(); ++p) {
        if (share_.units[p] > 0) links[d] += gres_.devices[d].links[p];
      }
    }
    std::ranges::stable_sort(list_, {}, [&](std::size_t d) { return links[d]; });
  }

  const Node& node_;
  const Gres& gres_;
  GresShare& share_;
  std::vector<std::uint64_t> free_;
  std::vector<std::size_t> list_;
  bool linked_ = false;  // picked as Slurm does
  bool well_linked_ = false;
};

/// The job's cores on a node, socket by socket.
struct UsedSockets {
  std::vector<std::uint64_t> cores;
  std::uint64_t all = 0;
  UsedSockets(const Node& node, const Bits& job_cores) : cores(node.sockets, 0) {
    job_cores.each([&](std::size_t core) { ++cores[node.socket_of(core)]; });
    all = std::accumulate(cores.begin(), cores.end(), std::uint64_t{0});
  }
};

/// Chooses devices of one DeviceAsk on all nodes.
class DeviceChoice {
 public:
  DeviceChoice(const cluster::Cluster& cluster, const cluster::UsageView& usage, const Ask& ask,
               std::size_t which, const std::vector<Taken>& taken, std::vector<NodeShare>& shares)
      : cluster_(cluster),
        usage_(usage),
        ask_(ask),
        which_(which),
        want_(ask.devices[which]),
        taken_(taken),
        shares_(shares) {}

  bool run() {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      const Node& node = node_of(i);
      const Gres* gres = node.find_gres(want_.name);
      if (gres == nullptr) {
        if (want_.per_node > 0 || want_.per_socket > 0) return false;
        continue;
      }
      GresShare& share = share_of(i, *gres);
      const bool ok =
          want_.shares_gpu() ? choose_shares(i, *gres, share) : choose_whole(i, *gres, share);
      if (!ok) return false;
    }
    if (counts_job_total()) pick_missing();
    return !counts_job_total() || total_ >= want_.per_job;
  }

 private:
  /// Per-job counts rule only where no nearer form was given.
  [[nodiscard]] bool counts_job_total() const {
    return want_.per_job > 0 && want_.per_node == 0 && want_.per_socket == 0 && want_.per_task == 0;
  }
  [[nodiscard]] const Node& node_of(std::size_t i) const { return cluster_.nodes[shares_[i].node]; }
  [[nodiscard]] bool keeps_whole() const {
    return cluster_.settings.placement == cluster::Placement::keep_whole;
  }

  GresShare& share_of(std::size_t i, const Gres& gres) {
    auto& all = shares_[i].gres;
    const auto at = std::ranges::find(all, gres.name, &GresShare::name);
    if (at != all.end()) return *at;
    return all.emplace_back(
        GresShare{gres.name, std::vector<std::uint64_t>(gres.devices.size(), 0)});
  }

  bool choose_whole(std::size_t i, const Gres& gres, GresShare& share) {
    const Node& node = node_of(i);
    Picker picker(node, usage_.at(shares_[i].node), gres, want_, share, keeps_whole());
    const UsedSockets used(node, shares_[i].cores);
    if (want_.per_node > 0) {
      return pick_proportional(picker, node, used, want_.per_node, true) == want_.per_node;
    }
    if (want_.per_socket > 0)
      return pick_per_socket(picker, node, usage_.at(shares_[i].node), used, gres, share);
    if (want_.per_task > 0) return pick_per_task(picker, i, used);
    pick_job_part(picker, i, used, gres, share);
    return true;
  }

  /// Each used socket its part by cores, then any-socket devices, then more of the used sockets,
  /// then (not under enforce-binding) the others.
  std::uint64_t pick_proportional(Picker& picker, const Node& node, const UsedSockets& used,
                                  std::uint64_t count, bool others) {
    std::uint64_t got = 0;
    for (std::uint32_t s = 0; s < node.sockets && used.all > 0; ++s) {
      const std::uint64_t part = used.cores[s] * count / used.all;
      if (part > 0) got += picker.pick_on_socket(s, std::min(part, count - got));
    }
    if (got < count) got += picker.pick_any_socket(count - got);
    for (std::uint32_t s = 0; s < node.sockets && got < count; ++s) {
      if (used.cores[s] > 0) got += picker.pick_on_socket(s, count - got);
    }
    if (!others && got > 0) return got;
    for (std::uint32_t s = 0; s < node.sockets && got < count && !ask_.enforce_binding; ++s) {
      if (used.cores[s] == 0) got += picker.pick_on_socket(s, count - got);
    }
    return got;
  }

  bool pick_per_socket(Picker& picker, const Node& node, const NodeUsage& usage, UsedSockets used,
                       const Gres& gres, const GresShare& share) {
    std::uint32_t sockets = 0;
    for (std::uint64_t cores : used.cores) sockets += cores > 0 ? 1 : 0;
    // More sockets asked for than the cores use: others with enough free devices count too.
    for (std::uint32_t s = 0; s < node.sockets && sockets < ask_.sockets_per_node.value_or(1);
         ++s) {
      if (used.cores[s] > 0) continue;
      std::uint64_t free = 0;
      for (std::size_t d = 0; d < gres.devices.size(); ++d) {
        if (!want_.takes(gres.devices[d])) continue;
        if (gres.devices[d].near(s) && share.units[d] == 0)
          free += free_units(node, usage, gres, d);
      }
      if (free < want_.per_socket) continue;
      used.cores[s] = 1;
      ++sockets;
    }
    const std::uint64_t count = want_.per_socket * sockets;
    std::uint64_t got = 0;
    for (std::uint32_t s = 0; s < node.sockets; ++s) {
      if (used.cores[s] > 0) got += picker.pick_on_socket(s, want_.per_socket);
    }
    if (got < count) got += picker.pick_any_socket(count - got);
    for (std::uint32_t s = 0; s < node.sockets && got < count; ++s) {
      if (used.cores[s] > 0) got += picker.pick_on_socket(s, count - got);
    }
    for (std::uint32_t s = 0; s < node.sockets && got < count; ++s) {
      if (used.cores[s] == 0) got += picker.pick_on_socket(s, count - got);
    }
    return got == count;
  }

  bool pick_per_task(Picker& picker, std::size_t i, const UsedSockets& used) {
    const Node& node = node_of(i);
    const NodeShare& share = shares_[i];
    const std::uint64_t tasks = std::max<std::uint32_t>(share.tasks, 1);
    const std::uint64_t threads = ask_.usable_threads(node);
    const std::uint64_t cpus_per_task = std::max<std::uint64_t>(used.all * threads / tasks, 1);
    const std::uint64_t cores_per_task =
        std::max<std::uint64_t>((cpus_per_task + threads - 1) / threads, 1);
    const std::uint64_t count = tasks * want_.per_task;
    std::uint64_t got = 0;
    for (std::uint32_t s = 0; s < node.sockets && got < count; ++s) {
      const std::uint64_t here = used.cores[s] / cores_per_task * want_.per_task;
      got += picker.pick_on_socket(s, std::min(here, count - got));
    }
    if (got < count) got += picker.pick_everywhere(count - got);
    return got == count;
  }

  /// A job total: this node's part, at most what is left for it when later nodes get one each.
  void pick_job_part(Picker& picker, std::size_t i, const UsedSockets& used, const Gres& gres,
                     GresShare& share) {
    const Node& node = node_of(i);
    const std::uint64_t later = shares_.size() - 1 - i;
    const std::uint64_t rest = want_.per_job - std::min(want_.per_job, total_);
    const std::uint64_t quota =
        std::min(rest > later ? rest - later : 1, taken_[i].devices[which_]);
    if (!picker.linked()) {
      total_ += pick_proportional(picker, node, used, quota, false);
      return;
    }
    std::uint64_t got = picker.take_all([&](const Device& d) {
      for (std::uint32_t s = 0; s < node.sockets; ++s) {
        if (used.cores[s] > 0 && d.near(s)) return true;
      }
      return false;
    });
    while (got > quota) {
      picker.give_back(worst_linked(gres, share));
      --got;
    }
    total_ += got;
  }

  /// Of the picked devices, the one with fewest links to the first of the best-linked pair.
  static std::size_t worst_linked(const Gres& gres, const GresShare& share) {
    const std::vector<std::size_t> picked = share.devices().members();
    std::size_t anchor = picked.front();
    int best = -1;
    for (std::size_t a = 0; a < picked.size(); ++a) {
      for (std::size_t b = a + 1; b < picked.size(); ++b) {
        const int links = gres.devices[picked[a]].links[picked[b]];
        if (links > best) {
          best = links;
          anchor = picked[a];
        }
      }
    }
    std::size_t worst = anchor;
    int fewest = 0;
    for (std::size_t d : picked) {
      if (d == anchor) continue;
      const int links = gres.devices[anchor].links[d];
      if (worst == anchor || links < fewest) {
        worst = d;
        fewest = links;
      }
    }
    return worst;
  }

  /// How many more devices the free memory of a node pays for (--mem-per-gpu).
  [[nodiscard]] std::uint64_t paid_for(std::size_t i) const {
    if (!ask_.memory_counts || !ask_.memory || ask_.memory->per != request::MemoryPer::gpu) {
      return ~std::uint64_t{0};
    }
    const Node& node = node_of(i);
    const std::uint64_t all = node.usable_memory_mb();
    const std::uint64_t free = std::min(all - std::min(all, usage_.at(shares_[i].node).memory_mb),
                                        ask_.memory_limit(node));
    const GresShare* held = shares_[i].find(want_.name);
    const std::uint64_t have = held == nullptr ? 0 : held->total();
    const std::uint64_t most = free / std::max<std::uint64_t>(ask_.memory->mb, 1);
    return most - std::min(most, have);
  }

  /// What the parts left over is picked node by node, socket by socket.
  void pick_missing() {
    for (std::size_t i = 0; i < shares_.size() && total_ < want_.per_job; ++i) {
      const Node& node = node_of(i);
      const Gres* gres = node.find_gres(want_.name);
      if (gres == nullptr) continue;
      Picker picker(node, usage_.at(shares_[i].node), *gres, want_, share_of(i, *gres),
                    keeps_whole());
      std::uint64_t room = paid_for(i);
      for (std::uint32_t s = 0; s < node.sockets && total_ < want_.per_job && room > 0; ++s) {
        const std::uint64_t got = picker.pick(std::min(want_.per_job - total_, room),
                                              [&](const Device& d) { return d.near(s); });
        total_ += got;
        room -= got;
      }
    }
  }

  /// Shares: the whole need of the node from one device, unless the cluster allows to split.
  bool choose_shares(std::size_t i, const Gres& gres, GresShare& share) {
    const Node& node = node_of(i);
    const NodeUsage& usage = usage_.at(shares_[i].node);
    std::uint64_t need = want_.per_node;
    if (need == 0 && want_.per_task > 0)
      need = want_.per_task * std::max<std::uint32_t>(shares_[i].tasks, 1);
    if (need == 0) need = taken_[i].devices[which_];
    share.units.resize(gres.devices.size(), 0);
    const std::vector<std::size_t> order = share_order(node, usage, gres, shares_[i].cores);
    for (std::size_t d : order) {
      if (free_units(node, usage, gres, d) < need) continue;
      share.units[d] += need;
      total_ += need;
      return true;
    }
    if (!ask_.multiple_sharing || gres.never_split()) return false;
    for (std::size_t d : order) {
      const std::uint64_t units = std::min(need, free_units(node, usage, gres, d));
      share.units[d] += units;
      total_ += units;
      need -= units;
    }
    return need == 0;
  }

  /// Devices of the job's sockets, then any-socket ones, then the others; by index inside.
  std::vector<std::size_t> share_order(const Node& node, const NodeUsage& usage, const Gres& gres,
                                       const Bits& cores) const {
    const UsedSockets used(node, cores);
    const auto rank = [&](std::size_t d) {
      const Device& device = gres.devices[d];
      if (device.any_socket(node.sockets)) return 1;
      for (std::uint32_t s = 0; s < node.sockets; ++s) {
        if (used.cores[s] > 0 && device.near(s)) return 0;
      }
      return 2;
    };
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < gres.devices.size(); ++d) {
      if (want_.takes(gres.devices[d])) order.push_back(d);
    }
    std::ranges::stable_sort(order, {}, rank);
    if (ask_.least_loaded_shares) {
      std::ranges::stable_sort(order, std::greater<>{},
                               [&](std::size_t d) { return free_units(node, usage, gres, d); });
    } else if (want_.name == text::kGpuMemory) {  // whole ones last: some are larger than others
      const auto position = static_cast<std::size_t>(&gres - node.gres.data());
      std::ranges::stable_sort(order, {}, [&](std::size_t d) {
        return std::pair(usage.gres[position][d] == 0, free_units(node, usage, gres, d));
      });
    } else if (keeps_whole()) {  // the GPU with the least left that holds it
      std::ranges::stable_sort(order, {},
                               [&](std::size_t d) { return free_units(node, usage, gres, d); });
    } else if (want_.name == "mps") {  // a GPU that serves MPS already is used up first
      const auto position = static_cast<std::size_t>(&gres - node.gres.data());
      std::ranges::stable_sort(order, std::greater<>{},
                               [&](std::size_t d) { return usage.gres[position][d] > 0; });
    }
    return order;
  }

  const cluster::Cluster& cluster_;
  const cluster::UsageView& usage_;
  const Ask& ask_;
  const std::size_t which_;
  const DeviceAsk& want_;
  const std::vector<Taken>& taken_;
  std::vector<NodeShare>& shares_;
  std::uint64_t total_ = 0;  // gathered over the nodes so far
};

/// --exclusive: everything of the node that is not flagged explicit or out of service; shares are
/// not handed out.
void take_all_devices(const Node& node, const cluster::NodeUsage& usage, NodeShare& share) {
  for (const Gres& gres : node.gres) {
    if (gres.shares_gpu || gres.given_explicitly) continue;
    GresShare all{gres.name, {}};
    for (std::size_t d = 0; d < gres.devices.size(); ++d) {
      all.units.push_back(free_units(node, usage, gres, d));
    }
    if (all.total() > 0) share.gres.push_back(std::move(all));
  }
}

}  // namespace

bool choose_devices(const cluster::Cluster& cluster, const cluster::UsageView& usage,
                    const Ask& ask, const std::vector<Taken>& taken,
                    std::vector<NodeShare>& shares) {
  bool shared = false;
  for (const DeviceAsk& device : ask.devices) shared = shared || device.shares_gpu();
  if (ask.exclusive && !shared) {
    for (NodeShare& share : shares) {
      take_all_devices(cluster.nodes[share.node], usage.at(share.node), share);
    }
    return true;
  }
  for (std::size_t i = 0; i < ask.devices.size(); ++i) {
    if (!DeviceChoice(cluster, usage, ask, i, taken, shares).run()) return false;
  }
  for (NodeShare& share : shares) {
    std::erase_if(share.gres, [](const GresShare& g) { return g.total() == 0; });
  }
  return true;
}

}  // namespace berth::place
