#include "place/examine.h"

#include <algorithm>
#include <numeric>

#include "place/device_rules.h"

namespace berth::place {
namespace {

using cluster::Gres;
using cluster::Node;
using cluster::NodeUsage;

/// One node under examination: its free cores socket by socket, narrowed step by step.
class NodeExam {
 public:
  NodeExam(const Ask& ask, bool pool_shares, const Examination::ClassView& view, const Node& node,
           const NodeUsage& usage, const Gathered& gathered, Pass pass)
      : ask_(ask),
        pool_shares_(pool_shares),
        view_(view),
        node_(node),
        usage_(usage),
        gathered_(gathered),
        near_(pass == Pass::near || ask.enforce_binding),
        first_pass_(pass == Pass::near),
        threads_(ask.usable_threads(node)) {}

  Offer run() {
    offer_.devices.assign(ask_.devices.size());
    offer_.free_units.assign(ask_.devices.size());
    if (!open_for_job()) return std::move(offer_);
    count_free_cores();
    if (ask_.max_cpus_per_socket) cap_to_socket_limit();
    if (!whole_node_is_free()) return std::move(offer_);
    if (!enough_sockets() || !memory_fits() || !offer_cpus()) return std::move(offer_);
    note_devices();
    for (std::size_t i = 0; i < ask_.devices.size(); ++i) {
      if (!narrow_for(i)) return std::move(offer_);
    }
    if (!lower_to_memory()) return std::move(offer_);
    finish();
    return std::move(offer_);
  }

 private:
  bool out(Cause cause, std::uint64_t have = 0, std::uint64_t asked = 0, std::size_t device = 0) {
    offer_.cause = cause;
    offer_.have = have;
    offer_.asked = asked;
    offer_.device = device;
    return false;
  }

  bool open_for_job() {
    if (usage_.closed) return out(Cause::closed);
    if (ask_.tmp_mb > node_.tmp_disk_mb) {
      return out(Cause::tmp_disk, node_.tmp_disk_mb, ask_.tmp_mb);
    }
    return true;
  }

  void count_free_cores() {
    per_socket_.assign(node_.sockets);
    const bool withholds = ask_.withholds(node_);
    const Bits withheld = withholds ? ask_.withheld(node_) : Bits();
    for (std::uint32_t s = 0; s < node_.sockets; ++s) {
      const std::size_t first = std::size_t{s} * node_.cores_per_socket;
      const std::size_t last = first + node_.cores_per_socket - 1;
      const std::size_t taken = withholds ? (usage_.cores | withheld).count_in(first, last)
                                          : usage_.cores.count_in(first, last);
      per_socket_[s] = node_.cores_per_socket - static_cast<std::uint32_t>(taken);
    }
  }

  /// MaxCPUsPerSocket: what jobs of the partition may have of a socket, all together.
  void cap_to_socket_limit() {
    const std::uint32_t most = *ask_.max_cpus_per_socket / node_.threads_per_core;
    const Bits* others = usage_.bounded_cores(ask_.bound);
    for (std::uint32_t s = 0; s < node_.sockets; ++s) {
      const std::size_t first = std::size_t{s} * node_.cores_per_socket;
      const std::size_t taken =
          others == nullptr ? 0 : others->count_in(first, first + node_.cores_per_socket - 1);
      const std::uint32_t left = most - std::min(most, static_cast<std::uint32_t>(taken));
      per_socket_[s] = std::min(per_socket_[s], left);
    }
  }

  /// MaxCPUsPerNode less what jobs of the partition have here already.
  [[nodiscard]] std::uint64_t node_limit() const {
    if (!ask_.max_cpus_per_node) return kMany;
    const Bits* others = usage_.bounded_cores(ask_.bound);
    const std::uint64_t taken =
        others == nullptr ? 0 : others->count() * std::uint64_t{node_.threads_per_core};
    return *ask_.max_cpus_per_node - std::min<std::uint64_t>(*ask_.max_cpus_per_node, taken);
  }

  bool whole_node_is_free() {
    // Whose jobs run on a node is not known here, so --exclusive=user keeps away from all of them.
    if (ask_.alone && usage_.jobs > 0) return out(Cause::busy_exclusive);
    if (!ask_.exclusive) return true;
    bool taken = usage_.jobs > 0 || usage_.cores.any();
    for (const auto& devices : usage_.gres) {
      for (std::uint64_t units : devices) taken = taken || units > 0;
    }
    return taken ? out(Cause::busy_exclusive) : true;
  }

  bool enough_sockets() {
    std::uint32_t usable = 0;
    for (std::uint32_t s = 0; s < node_.sockets; ++s) {
      if (ask_.cores_per_socket && per_socket_[s] < *ask_.cores_per_socket) drop_socket(s);
      if (per_socket_[s] > 0) ++usable;
    }
    if (ask_.sockets_per_node && usable < *ask_.sockets_per_node) {
      return out(Cause::sockets, usable, *ask_.sockets_per_node);
    }
    return true;
  }

  [[nodiscard]] std::uint64_t free_memory() const {
    const std::uint64_t all = node_.usable_memory_mb();
    return std::min(all - std::min(all, usage_.memory_mb), ask_.memory_limit(node_));
  }

  bool memory_fits() {
    if (!ask_.memory_counts) return true;
    if (!ask_.memory) {
      return usage_.memory_mb == 0 ? true : out(Cause::memory, free_memory(), node_.memory_mb);
    }
    if (ask_.memory->per == request::MemoryPer::node && ask_.memory->mb > free_memory()) {
      return out(Cause::memory, free_memory(), ask_.memory->mb);
    }
    return !ask_.exclusive || whole_node_memory_fits();
  }

  /// --exclusive is charged for all CPUs or all GPUs of the node.
  bool whole_node_memory_fits() {
    std::uint64_t charged = 0;
    if (ask_.memory->per == request::MemoryPer::cpu) {
      charged = (node_.cores() - node_.reserved_cores.count()) * ask_.charged_threads(node_);
    } else if (ask_.memory->per == request::MemoryPer::gpu) {
      const Gres* gpus = node_.find_gres("gpu");
      charged = gpus == nullptr ? 0 : gpus->total();
    }
    if (charged * ask_.memory->mb <= free_memory()) return true;
    return out(Cause::memory, free_memory(), charged * ask_.memory->mb);
  }

  /// §3: CPUs and task room before devices are looked at.
  bool offer_cpus() {
    const std::uint64_t c = ask_.cpus_per_task;
    const std::uint64_t cpus = std::min(cpus_left(), node_limit());
    if (cpus < ask_.min_cpus_per_node) return out(Cause::cpus, cpus, ask_.min_cpus_per_node);
    std::uint64_t room = 0;
    for (std::uint32_t s = 0; s < node_.sockets; ++s) {
      std::uint64_t tasks = std::uint64_t{per_socket_[s]} * threads_;
      if (ask_.per_socket_tasks) tasks = std::min<std::uint64_t>(tasks, *ask_.per_socket_tasks);
      room += tasks;
    }
    if (ask_.per_node_tasks) {
      if (room < *ask_.per_node_tasks) return out(Cause::tasks, room, *ask_.per_node_tasks);
      if (!ask_.exclusive && !ask_.cpus_per_gpu) {
        room = std::min<std::uint64_t>(room, *ask_.per_node_tasks);
      }
    }
    offered_ = std::min(room, cpus);
    if (c > 1) {
      std::uint64_t tasks = cpus / c;
      if (ask_.per_core_tasks == 1U && c > threads_) {
        tasks = total_cores() / ((c + threads_ - 1) / threads_);
      }
      offered_ = std::min(tasks, room) * c;
    }
    if (ask_.per_socket_tasks) cap_sockets(std::uint64_t{*ask_.per_socket_tasks} * c);
    if (ask_.devices.empty() && !ask_.exclusive) cut_to_lowest();
    std::uint64_t least = ask_.min_cpus_per_node;
    if (ask_.per_node_tasks) least = std::max(least, *ask_.per_node_tasks * c);
    if (ask_.max_nodes == 1U && ask_.tasks && !ask_.overcommit) {
      least = std::max(least, *ask_.tasks * c);
    }
    return offered_ >= least ? true : out(Cause::cpus, offered_, least);
  }

  /// Free units of every asked kind, and the GPU reach of the node.
  void note_devices() {
    near_units_.assign(ask_.devices.size() * node_.sockets);
    any_units_.assign(ask_.devices.size());
    for (std::size_t i = 0; i < ask_.devices.size(); ++i) {
      const Examination::KindView& kind = view_.kinds[i];
      if (!kind.position) continue;
      const DeviceAsk& want = ask_.devices[i];
      const Bits& blocked = usage_.blocked[*kind.position];
      any_units_[i] = units_of(kind, kind.any_socket, blocked);
      std::uint64_t reach = total_cores() > 0 ? any_units_[i] : 0;
      offer_.free_units[i] = any_units_[i];
      for (std::uint32_t s = 0; s < node_.sockets; ++s) {
        const std::uint64_t units = units_of(kind, kind.on_socket[s], blocked);
        near_units_[i * node_.sockets + s] = units;
        offer_.free_units[i] += units;
        if (per_socket_[s] > 0) reach += units;
      }
      const Gres& gres = node_.gres[*kind.position];
      const bool one = !ask_.multiple_sharing || gres.never_split();
      // Slurm takes shares that no GPU has, if its node has them. Memory is berth's own.
      const bool pooled = pool_shares_ && !gres.is_told();
      if (want.shares_gpu() && !pooled && one) share_cap_ = largest_share_;
      if (want.is_gpu()) {
        const std::uint64_t cap = want.per_node > 0 ? want.per_node : want.per_job;
        offer_.reach += ask_.exclusive || cap == 0 ? reach : std::min(reach, cap);
      }
    }
  }

  /// Units left of a set of devices; remembers the largest single one for shares.
  std::uint64_t units_of(const Examination::KindView& kind, const Bits& devices,
                         const Bits& blocked) {
    if (kind.whole) return devices.count_without(blocked);
    const Gres& gres = node_.gres[*kind.position];
    std::uint64_t sum = 0;
    devices.each([&](std::size_t d) {
      if (blocked.test(d)) return;
      const std::uint64_t left = gres.devices[d].units - usage_.gres[*kind.position][d];
      largest_share_ = std::max(largest_share_, left);
      sum += left;
    });
    return sum;
  }

  /// §4: which sockets and cores stay for one kind of device, and how many of it are usable.
  bool narrow_for(std::size_t i) {
    const DeviceAsk& want = ask_.devices[i];
    const std::uint64_t c = ask_.cpus_per_task;
    TaskBounds bounds = task_bounds(ask_, node_, offered_);
    bounds.high = std::min(bounds.high, max_tasks_);
    const std::uint64_t e = cpus_per_device(ask_, want, first_pass_ ? Pass::near : Pass::any);
    const NodeRoom room{free_memory(), cpus_left(), share_cap_};
    const std::uint64_t limit = unit_limit(ask_, i, node_, room, gathered_, bounds, e);
    if (want.per_task > 0 && want.per_task * bounds.low > limit) {
      return no_devices(i, want.per_task * bounds.low);
    }
    SmallVector<std::uint8_t, 8> needed(node_.sockets);
    const std::uint64_t sum = walk_sockets(i, limit, e, bounds, needed);
    std::uint64_t usable = std::min(sum, limit);
    if (e > 0) usable = std::min(usable, cpus_left() / e);
    const std::uint64_t per_socket_least =
        want.per_socket * std::max<std::uint32_t>(ask_.sockets_per_node.value_or(1), 1);
    const std::uint64_t least =
        std::max({std::uint64_t{1}, want.per_node, want.per_task, per_socket_least});
    if (usable < least) return no_devices(i, least);
    if (e > 0) bounds.high = std::min(bounds.high, std::max(bounds.low, usable * e / c));
    if (want.per_task > 0) {
      const std::uint64_t tasks = usable / want.per_task;
      if (tasks < bounds.low) return no_devices(i, want.per_task * bounds.low);
      bounds.high = std::min(bounds.high, tasks);
    }
    if (ask_.per_gpu_tasks && want.is_gpu()) {
      bounds.high = std::min(bounds.high, usable * *ask_.per_gpu_tasks);
    }
    if (bounds.high >= bounds.low) bounds.high -= bounds.high % bounds.low;
    const bool anywhere =
        any_units_[i] >= std::min(limit, want.per_node > 0 ? want.per_node : limit);
    if (near_ && !anywhere) {
      for (std::uint32_t s = 0; s < node_.sockets; ++s) {
        if (needed[s] == 0) drop_socket(s);
      }
    }
    offer_.devices[i] = usable;
    return keep_wanted_cores(i, usable, e, anywhere, needed, bounds);
  }

  /// Sockets from the one with most free cores; adds up units until the limit is reached.
  std::uint64_t walk_sockets(std::size_t i, std::uint64_t limit, std::uint64_t e,
                             const TaskBounds& bounds, SmallVector<std::uint8_t, 8>& needed) {
    const DeviceAsk& want = ask_.devices[i];
    SmallVector<std::uint32_t, 8> order(node_.sockets);
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return per_socket_[a] != per_socket_[b] ? per_socket_[a] > per_socket_[b] : a < b;
    });
    const std::uint64_t target = want.per_node > 0 ? want.per_node : limit;
    std::uint64_t sum = any_units_[i];
    for (std::uint32_t s : order) {
      std::uint64_t units = near_units_[i * node_.sockets + s];
      if (near_ && e > 0) units = std::min(units, std::uint64_t{per_socket_[s]} * threads_ / e);
      if (units == 0 || units < want.per_socket) {
        if (first_pass_ && any_units_[i] == 0) shed_cores(s, bounds.low * ask_.cpus_per_task);
        continue;
      }
      if (sum < target) needed[s] = 1;
      sum += units;
    }
    return sum;
  }

  /// §4 points 6 and 7: cut the cores to those the tasks need, evenly over the needed sockets.
  bool keep_wanted_cores(std::size_t i, std::uint64_t usable, std::uint64_t e, bool anywhere,
                         const SmallVector<std::uint8_t, 8>& needed, TaskBounds bounds) {
    const DeviceAsk& want = ask_.devices[i];
    const std::uint64_t c = ask_.cpus_per_task;
    const std::uint64_t needed_sockets =
        static_cast<std::uint64_t>(std::ranges::count(needed, std::uint8_t{1}));
    const auto cores_for = [&](std::uint64_t tasks) {
      if (ask_.overcommit) tasks = 1;  // all tasks share the CPUs of one
      return (tasks * c + threads_ - 1) / threads_;
    };
    const std::uint64_t available = total_cores();
    std::uint64_t tasks = bounds.high;
    // Fewer tasks, in steps of the lower bound, until their cores are there.
    const std::uint64_t fit = available * threads_ / c;
    if (!ask_.overcommit && tasks > fit && tasks > bounds.low) {
      const std::uint64_t steps = (tasks - fit + bounds.low - 1) / bounds.low;
      tasks = std::max(bounds.low, tasks - std::min(tasks, steps * bounds.low));
    }
    std::uint64_t wanted = cores_for(tasks);
    if (e > 0) {
      std::uint64_t units = usable;
      if (want.per_node > 0) {
        units = want.per_node;
      } else if (want.per_socket > 0) {
        units = want.per_socket * needed_sockets;
      } else if (want.per_task > 0) {
        units = want.per_task * tasks;
      }
      wanted = std::max(wanted, (units * e + threads_ - 1) / threads_);
    }
    if (ask_.enforce_binding) {
      wanted = std::max(wanted, needed_sockets);
      offer_.min_cores = std::max(offer_.min_cores, static_cast<std::uint32_t>(needed_sockets));
    }
    wanted =
        std::max({wanted, std::uint64_t{1}, (tasks_per_node_cpus() + threads_ - 1) / threads_});
    if (wanted > available)
      return out(Cause::near_cores, available * threads_, wanted * threads_, i);
    max_tasks_ = std::min(max_tasks_, tasks);
    if (ask_.exclusive) return true;
    if (anywhere) return true;  // devices that belong to no socket leave the cores alone
    std::uint64_t surplus = available - wanted;
    if (!first_pass_ && !ask_.enforce_binding) {
      for (std::uint32_t s = node_.sockets; s-- > 0 && surplus > 0;) {
        if (needed[s] != 0) continue;
        const auto off =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(surplus, per_socket_[s]));
        per_socket_[s] -= off;
        surplus -= off;
      }
    }
    while (surplus > 0 && level_off(needed, surplus)) {
    }
    return true;
  }

  /// Takes one core off the fullest needed socket, lower number first. With a large surplus whole
  /// rounds are taken at once: once all needed sockets are level, each round takes one off each.
  bool level_off(const SmallVector<std::uint8_t, 8>& needed, std::uint64_t& surplus) {
    std::uint32_t most = node_.sockets;
    std::uint64_t level = 0;
    bool all_level = true;
    for (std::uint32_t s = 0; s < node_.sockets; ++s) {
      if (needed[s] == 0) continue;
      all_level = all_level && (level == 0 || per_socket_[s] == per_socket_[most]);
      ++level;
      if (most == node_.sockets || per_socket_[s] > per_socket_[most]) most = s;
    }
    if (most == node_.sockets || per_socket_[most] == 0) return false;
    const std::uint64_t rounds =
        all_level ? std::min<std::uint64_t>(surplus / level, per_socket_[most]) : 0;
    if (rounds > 0) {
      for (std::uint32_t s = 0; s < node_.sockets; ++s) {
        if (needed[s] != 0) per_socket_[s] -= static_cast<std::uint32_t>(rounds);
      }
      surplus -= rounds * level;
      return true;
    }
    --per_socket_[most];
    --surplus;
    return true;
  }

  /// CPUs that --ntasks-per-node holds on every node, also where -n is smaller.
  [[nodiscard]] std::uint64_t tasks_per_node_cpus() const {
    const bool several = ask_.tasks.value_or(2) > 1;
    if (!ask_.per_node_tasks || !several) return 0;
    return std::uint64_t{*ask_.per_node_tasks} * ask_.cpus_per_task;
  }

  bool no_devices(std::size_t i, std::uint64_t asked) {
    const bool are_there = offer_.free_units[i] >= asked && !ask_.devices[i].shares_gpu();
    if (are_there && ask_.memory && ask_.memory->per == request::MemoryPer::gpu) {
      return out(Cause::memory, free_memory(), asked * ask_.memory->mb);
    }
    if (are_there && ask_.cpus_per_gpu) {
      return out(Cause::cpus, cpus_left(), asked * *ask_.cpus_per_gpu);
    }
    const auto& position = view_.kinds[i].position;
    const bool of_one = position && node_.gres[*position].is_told();
    return out(Cause::devices, of_one ? largest_share_ : offer_.free_units[i],
               std::max(asked, ask_.devices[i].per_node), i);
  }

  /// --mem-per-cpu: as many whole cores as the free memory pays for.
  bool lower_to_memory() {
    std::uint64_t cpus = cpus_left();
    if (!ask_.devices.empty()) {
      const std::uint64_t tasks = ask_.overcommit ? 1 : max_tasks_;
      offered_ = ask_.cpus_per_gpu ? cpus : std::min(cpus, tasks * ask_.cpus_per_task);
      offered_ = std::max({offered_, std::uint64_t{offer_.min_cores} * threads_,
                           std::min(cpus, tasks_per_node_cpus())});
      offered_ = std::min(offered_, node_limit());
      const std::uint64_t floor =
          std::max<std::uint64_t>(tasks_per_node_cpus(), ask_.cpus_per_task);
      if (offered_ < floor) return out(Cause::cpus, offered_, floor);
    }
    if (!ask_.memory_counts || !ask_.memory || ask_.memory->per != request::MemoryPer::cpu)
      return true;
    // A core is charged whole, so memory pays for a number of cores.
    const std::uint64_t per_core = ask_.memory->mb * ask_.charged_threads(node_);
    const std::uint64_t fits = free_memory() / per_core * threads_;
    if (fits < (offered_ + threads_ - 1) / threads_ * threads_) {
      offered_ = std::min(offered_, fits);
      offered_ -= offered_ % ask_.cpus_per_task;
    }
    std::uint64_t least = ask_.min_cpus_per_node;
    if (ask_.max_nodes == 1U && ask_.tasks && !ask_.overcommit) {
      least = std::max<std::uint64_t>(least, std::uint64_t{*ask_.tasks} * ask_.cpus_per_task);
    }
    if (offered_ >= least) return true;
    if (fits >= least) return out(Cause::cpus, offered_, least);
    return out(Cause::memory, free_memory(), ask_.memory->mb * least);
  }

  void finish() {
    if (ask_.exclusive) {  // all cores are taken; whole tasks are what counts
      const std::uint64_t all = (node_.cores() - node_.reserved_cores.count()) * threads_;
      offered_ = std::min(all, node_limit());
      offered_ -= offered_ % ask_.cpus_per_task;
    }
    offer_.cpus = static_cast<std::uint32_t>(offered_);
    offer_.kept = per_socket_;
    offer_.max_tasks = static_cast<std::uint32_t>(std::min(max_tasks_, kMany));
  }

  // Cores are only counted here: what is kept of a socket are always its lowest free ones.
  [[nodiscard]] std::uint64_t total_cores() const {
    return std::accumulate(per_socket_.begin(), per_socket_.end(), std::uint64_t{0});
  }
  [[nodiscard]] std::uint64_t cpus_left() const { return total_cores() * threads_; }

  void drop_socket(std::uint32_t socket) { per_socket_[socket] = 0; }
  /// Takes cores off a socket while more than `keep_cpus` remain on the node.
  void shed_cores(std::uint32_t socket, std::uint64_t keep_cpus) {
    const std::uint64_t spare = cpus_left() > keep_cpus ? (cpus_left() - keep_cpus) / threads_ : 0;
    per_socket_[socket] -=
        static_cast<std::uint32_t>(std::min<std::uint64_t>(spare, per_socket_[socket]));
  }
  void cap_sockets(std::uint64_t cpus) {
    const std::uint64_t most = (cpus + threads_ - 1) / threads_;
    for (std::uint32_t& cores : per_socket_) {
      cores = static_cast<std::uint32_t>(std::min<std::uint64_t>(cores, most));
    }
  }
  /// Keeps the lowest cores that hold the offered CPUs, at most --ntasks-per-socket on a socket.
  void cut_to_lowest() {
    std::uint64_t left = offered_;
    const std::uint64_t most =
        ask_.per_socket_tasks ? std::uint64_t{*ask_.per_socket_tasks} * ask_.cpus_per_task : kMany;
    for (std::uint32_t& here : per_socket_) {
      const std::uint64_t cpus = std::min({left, std::uint64_t{here} * threads_, most});
      here = static_cast<std::uint32_t>((cpus + threads_ - 1) / threads_);
      left -= cpus;
    }
  }

  const Ask& ask_;
  const bool pool_shares_;
  const Examination::ClassView& view_;
  const Node& node_;
  const NodeUsage& usage_;
  const Gathered& gathered_;
  const bool near_;
  const bool first_pass_;
  const std::uint32_t threads_;

  Offer offer_;
  SmallVector<std::uint32_t, 4> per_socket_;  // free cores still in play
  std::uint64_t offered_ = 0;
  std::uint64_t max_tasks_ = kMany;
  std::uint64_t share_cap_ = kMany;
  std::uint64_t largest_share_ = 0;
  SmallVector<std::uint64_t, 8> near_units_;  // [device ask][socket]
  SmallVector<std::uint64_t, 2> any_units_;   // [device ask]
};

}  // namespace

std::uint64_t free_units(const Node& node, const NodeUsage& usage, const Gres& gres,
                         std::size_t device) {
  const auto position = static_cast<std::size_t>(&gres - node.gres.data());
  if (usage.blocked[position].test(device)) return 0;
  return gres.devices[device].units - usage.gres[position][device];
}

Bits offered_cores(const Ask& ask, const Node& node, const NodeUsage& usage, const Offer& offer) {
  Bits cores;
  const Bits withheld = ask.withheld(node);
  for (std::uint32_t s = 0; s < node.sockets; ++s) {
    std::size_t core = std::size_t{s} * node.cores_per_socket;
    for (std::uint32_t left = offer.kept[s]; left > 0; ++core) {
      if (usage.cores.test(core) || withheld.test(core)) continue;
      cores.set(core);
      --left;
    }
  }
  return cores;
}

const Examination::ClassView& Examination::view_of(const Node& node, std::uint32_t hardware_class) {
  if (views_.size() <= hardware_class) views_.resize(std::size_t{hardware_class} + 1);
  std::optional<ClassView>& view = views_[hardware_class];
  if (view) return *view;
  view.emplace();
  for (const DeviceAsk& want : ask_.devices) {
    KindView kind;
    kind.on_socket.resize(node.sockets);
    if (const Gres* gres = node.find_gres(want.name)) {
      kind.position = static_cast<std::size_t>(gres - node.gres.data());
      for (std::size_t d = 0; d < gres->devices.size(); ++d) {
        const cluster::Device& device = gres->devices[d];
        kind.whole = kind.whole && device.units == 1;
        if (!want.takes(device)) continue;
        if (device.any_socket(node.sockets)) {
          kind.any_socket.set(d);
        } else {
          device.sockets.each([&](std::size_t s) {
            if (s < node.sockets) kind.on_socket[s].set(d);
          });
        }
      }
    }
    view->kinds.push_back(std::move(kind));
  }
  return *view;
}

bool Examination::hopeless(const Node& node, std::uint32_t hardware_class, const NodeUsage& usage) {
  if (usage.closed) return true;
  if (ask_.memory_counts) {
    const std::uint64_t least = !ask_.memory ? usage.memory_mb == 0 ? 0 : node.usable_memory_mb()
                                : ask_.memory->per == request::MemoryPer::node
                                    ? ask_.memory->mb
                                    : std::min<std::uint64_t>(ask_.memory->mb, 1);
    if (usage.memory_mb + least > node.usable_memory_mb()) return true;
  }
  const std::uint64_t threads = ask_.usable_threads(node);
  if ((node.cores() - usage.cores.count()) * threads < ask_.min_cpus_per_node) return true;
  const ClassView& view = view_of(node, hardware_class);
  for (std::size_t i = 0; i < ask_.devices.size(); ++i) {
    const KindView& kind = view.kinds[i];
    if (!kind.position) return true;
    const std::uint64_t least =
        kind.whole
            ? std::max({std::uint64_t{1}, ask_.devices[i].per_node, ask_.devices[i].per_task})
            : 1;
    if (usage.open_devices[*kind.position] < least) return true;
  }
  return false;
}

Offer Examination::examine(const Node& node, std::uint32_t hardware_class, const NodeUsage& usage,
                           const Gathered& gathered, Pass pass) {
  const ClassView& view = view_of(node, hardware_class);
  return NodeExam(ask_, pool_shares_, view, node, usage, gathered, pass).run();
}

}  // namespace berth::place
