#include "place/sets.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace berth::place {
namespace {

constexpr std::size_t kEverySetUpTo = 12;

/// Tasks a node can hold by its CPUs and its devices.
std::uint64_t task_room(const Ask& ask, const Taken& node) {
  std::uint64_t room = node.cpus / ask.cpus_per_task;
  if (ask.overcommit) room = ~std::uint64_t{0} >> 32;
  if (ask.per_node_tasks) room = std::min<std::uint64_t>(room, *ask.per_node_tasks);
  for (std::size_t d = 0; d < ask.devices.size(); ++d) {
    if (ask.devices[d].per_task > 0) {
      room = std::min(room, node.devices[d] / ask.devices[d].per_task);
    }
  }
  return room;
}

/// What a set of nodes adds up to.
struct Sum {
  std::uint32_t nodes = 0;
  std::uint64_t cpus = 0;
  std::uint64_t tasks = 0;
  std::vector<std::uint64_t> devices;

  explicit Sum(const Ask& ask) : devices(ask.devices.size(), 0) {}
  void add(const Ask& ask, const Taken& node) {
    ++nodes;
    cpus += node.cpus;
    tasks += task_room(ask, node);
    for (std::size_t d = 0; d < devices.size(); ++d) devices[d] += node.devices[d];
  }
  [[nodiscard]] bool holds(const Ask& ask) const {
    if (nodes < ask.min_nodes || (ask.max_nodes && nodes > *ask.max_nodes)) return false;
    if (cpus < ask.total_cpus || (ask.tasks && tasks < *ask.tasks)) return false;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const DeviceAsk& want = ask.devices[d];
      if (want.per_job > 0 && (devices[d] < want.per_job || want.per_job < nodes)) return false;
    }
    return true;
  }
};

using Order = std::function<std::uint64_t(const Taken&)>;

std::uint64_t units(const Taken& node) {
  return std::accumulate(node.devices.begin(), node.devices.end(), std::uint64_t{0});
}

std::vector<Taken> pick(const std::vector<Taken>& offers, const std::vector<std::size_t>& which) {
  std::vector<Taken> out;
  for (std::size_t i : which) out.push_back(offers[i]);
  std::ranges::sort(out, {}, &Taken::node);
  return out;
}

std::optional<std::vector<Taken>> strongest_first(const Ask& ask, const std::vector<Taken>& offers,
                                                  const std::vector<std::size_t>& required,
                                                  const Order& strength) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (std::ranges::find(required, i) == required.end()) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater<>{},
                           [&](std::size_t i) { return strength(offers[i]); });
  Sum sum(ask);
  std::vector<std::size_t> chosen = required;
  for (std::size_t i : required) sum.add(ask, offers[i]);
  if (sum.holds(ask)) return pick(offers, chosen);
  for (std::size_t i : order) {
    if (ask.max_nodes && sum.nodes >= *ask.max_nodes) break;
    sum.add(ask, offers[i]);
    chosen.push_back(i);
    if (sum.holds(ask)) return pick(offers, chosen);
  }
  return std::nullopt;
}

std::optional<std::vector<Taken>> every_set(const Ask& ask, const std::vector<Taken>& offers,
                                            const std::vector<std::size_t>& required) {
  std::uint32_t must = 0;
  for (std::size_t i : required) must |= 1U << i;
  std::optional<std::uint32_t> best;
  for (std::uint32_t set = 1; set < (1U << offers.size()); ++set) {
    if ((set & must) != must) continue;
    if (best && std::popcount(set) >= std::popcount(*best)) continue;
    Sum sum(ask);
    for (std::size_t i = 0; i < offers.size(); ++i) {
      if ((set >> i & 1U) != 0) sum.add(ask, offers[i]);
    }
    if (sum.holds(ask)) best = set;
  }
  if (!best) return std::nullopt;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if ((*best >> i & 1U) != 0) which.push_back(i);
  }
  return pick(offers, which);
}

}  // namespace

bool could_hold(const Ask& ask, const std::vector<Taken>& offers) {
  if (offers.size() < ask.min_nodes) return false;
  const std::size_t most =
      std::min<std::size_t>(offers.size(), ask.max_nodes.value_or(0xFFFFFFFFU));
  const auto best_sum = [&](const Order& value) {
    std::vector<std::uint64_t> values;
    for (const Taken& node : offers) values.push_back(value(node));
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(most);
    std::ranges::nth_element(values, middle, std::greater<>{});
    return std::accumulate(values.begin(), middle, std::uint64_t{0});
  };
  if (best_sum([](const Taken& n) { return std::uint64_t{n.cpus}; }) < ask.total_cpus) return false;
  if (ask.tasks && best_sum([&](const Taken& n) { return task_room(ask, n); }) < *ask.tasks)
    return false;
  for (std::size_t d = 0; d < ask.devices.size(); ++d) {
    if (best_sum([&](const Taken& n) { return n.devices[d]; }) < ask.devices[d].per_job)
      return false;
  }
  return true;
}

std::optional<std::vector<Taken>> find_set(const Ask& ask, const std::vector<Taken>& offers,
                                           const std::vector<cluster::NodeIndex>& required) {
  if (ask.contiguous || !ask.arbitrary.empty()) return std::nullopt;  // these name their set
  std::vector<std::size_t> must;
  for (cluster::NodeIndex node : required) {
    const auto at = std::ranges::find(offers, node, &Taken::node);
    if (at == offers.end()) return std::nullopt;
    must.push_back(static_cast<std::size_t>(at - offers.begin()));
  }
  if (offers.size() <= kEverySetUpTo) return every_set(ask, offers, must);
  for (const Order& strength :
       {Order([](const Taken& n) { return std::uint64_t{n.cpus}; }), Order(units),
        Order([](const Taken& n) { return n.cpus * std::max<std::uint64_t>(units(n), 1); }),
        Order([&](const Taken& n) { return task_room(ask, n); })}) {
    if (auto set = strongest_first(ask, offers, must, strength)) return set;
  }
  return std::nullopt;
}

}  // namespace berth::place
