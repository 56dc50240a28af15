#include "place/network.h"

#include <algorithm>

#include "place/network_sums.h"
#include "place/segments.h"

namespace berth::place {
namespace {

using cluster::NetworkKind;
using cluster::NodeIndex;
using cluster::Topology;
using cluster::UnitIndex;

/// When so many leaves as should do do not, this many more are tried before all are.
constexpr std::size_t kMoreLeaves = 4;

class NearSelection {
 public:
  NearSelection(const SelectInput& in, const Ask& ask, NetworkSums& sums)
      : in_(in), ask_(ask), sums_(sums), network_(in.cluster.topology) {
    if (uses_ranking(in)) ranking_.emplace(in.cluster, in.usage, ask);
  }

  std::optional<std::vector<Taken>> run() {
    for (const std::uint32_t weight : sums_.weights()) {
      sums_.count_up_to(weight);
      for (std::uint32_t level = 0; level < network_.levels(); ++level) {
        if (auto taken = on_level(level)) return taken;
      }
      if (auto taken = beyond_the_top()) return taken;
      if (auto taken = on_a_stray()) return taken;
    }
    return std::nullopt;
  }

 private:
  /// In one switch of this level: the one with least to spare that holds it.
  std::optional<std::vector<Taken>> on_level(std::uint32_t level) {
    std::vector<UnitIndex> fitting;
    for (UnitIndex i = 0; i < network_.units.size(); ++i) {
      if (network_.units[i].level == level && sums_.holds(sums_.of(i), ask_)) fitting.push_back(i);
    }
    std::ranges::stable_sort(fitting, [&](UnitIndex a, UnitIndex b) {
      const NetworkSum& one = sums_.of(a);
      const NetworkSum& other = sums_.of(b);
      return one.nodes != other.nodes ? one.nodes < other.nodes : one.cpus < other.cpus;
    });
    for (const UnitIndex unit : fitting) {
      auto taken = within(network_.units[unit].leaves);
      if (taken && is_allowed(taken->size(), level)) return taken;
    }
    return std::nullopt;
  }

  /// A job that no block of any size holds takes several of the largest. Switches that have no
  /// switch in common are not connected.
  std::optional<std::vector<Taken>> beyond_the_top() {
    if (network_.kind != NetworkKind::block || !sums_.holds(sums_.all(), ask_)) return std::nullopt;
    std::vector<UnitIndex> leaves;
    for (UnitIndex i = 0; i < network_.units.size(); ++i) {
      if (network_.units[i].level == 0) leaves.push_back(i);
    }
    auto taken = within(leaves);
    if (taken && !is_allowed(taken->size(), network_.levels())) taken.reset();
    return taken;
  }

  /// A node in no block is near to none.
  std::optional<std::vector<Taken>> on_a_stray() {
    if (ask_.min_nodes > 1 || in_.required.size() > 1) return std::nullopt;
    for (const NodeIndex node : sums_.strays()) {
      if (!in_.required.empty() && in_.required.front() != node) continue;
      if (auto taken = select({node})) return taken;
    }
    return std::nullopt;
  }

  /// Blocks are kept together: a job that a smaller block could hold waits for one.
  [[nodiscard]] bool is_allowed(std::size_t nodes, std::uint32_t level) const {
    if (network_.kind != NetworkKind::block || level == 0) return true;
    return nodes > network_.block_sizes[level - 1];
  }

  [[nodiscard]] bool too_many(std::size_t leaves) const {
    return in_.max_leaves && leaves > *in_.max_leaves;
  }

  std::optional<std::vector<Taken>> within(const std::vector<UnitIndex>& leaves) {
    if (leaves.size() == 1) return too_many(1) ? std::nullopt : select(sums_.nodes_of(leaves[0]));
    std::vector<UnitIndex> chosen;
    std::vector<UnitIndex> others;
    for (const UnitIndex leaf : leaves) {
      const NetworkSum& sum = sums_.of(leaf);
      if (sum.required > 0) {
        chosen.push_back(leaf);
      } else if (sum.nodes > 0) {
        others.push_back(leaf);
      }
    }
    choose(chosen, others);
    if (!too_many(chosen.size())) {
      if (auto taken = select(all_but_the_rest(chosen))) return taken;
    }
    for (std::size_t more = 0;; ++more) {
      if (too_many(chosen.size())) return std::nullopt;
      if (auto taken = select(nodes_of(chosen))) return taken;
      if (others.empty()) return std::nullopt;
      const std::size_t extra = more < kMoreLeaves ? 1 : others.size();
      for (std::size_t i = 0; i < extra; ++i) chosen.push_back(take_best(chosen, others));
    }
  }

  [[nodiscard]] std::vector<NodeIndex> nodes_of(const std::vector<UnitIndex>& leaves) const {
    std::vector<NodeIndex> nodes;
    for (const UnitIndex leaf : leaves) {
      const std::vector<NodeIndex> here = sums_.nodes_of(leaf);
      nodes.insert(nodes.end(), here.begin(), here.end());
    }
    std::ranges::sort(nodes);
    return nodes;
  }

  /// All nodes of the leaves but the last, and of that one no more than are lacking: what is left
  /// over is left on one leaf. Empty where nodes are not what is lacking.
  [[nodiscard]] std::vector<NodeIndex> all_but_the_rest(
      const std::vector<UnitIndex>& leaves) const {
    if (leaves.size() < 2 || sums_.of(leaves.back()).required > 0) return {};
    const std::vector<UnitIndex> full(leaves.begin(), leaves.end() - 1);
    const std::uint64_t lacking = lack_of(full).nodes;
    std::vector<NodeIndex> rest = sums_.nodes_of(leaves.back());
    if (lacking == 0 || lacking >= rest.size()) return {};
    std::ranges::stable_sort(rest, {}, [&](NodeIndex n) { return in_.cluster.nodes[n].weight; });
    rest.resize(lacking);
    std::vector<NodeIndex> nodes = nodes_of(full);
    nodes.insert(nodes.end(), rest.begin(), rest.end());
    std::ranges::sort(nodes);
    return nodes;
  }

  /// What the chosen leaves lack of the ask.
  struct Lack {
    std::uint64_t nodes = 0;
    std::uint64_t cpus = 0;
    SmallVector<std::uint64_t, 2> devices;
    [[nodiscard]] bool nothing() const {
      return nodes == 0 && cpus == 0 &&
             std::ranges::all_of(devices, [](std::uint64_t units) { return units == 0; });
    }
  };

  [[nodiscard]] Lack lack_of(const std::vector<UnitIndex>& chosen) const {
    Lack lack{ask_.min_nodes, ask_.total_cpus, {}};
    lack.devices.assign(ask_.devices.size());
    for (std::size_t d = 0; d < lack.devices.size(); ++d) lack.devices[d] = ask_.devices[d].per_job;
    for (const UnitIndex leaf : chosen) subtract(lack, sums_.of(leaf));
    return lack;
  }

  static void subtract(Lack& lack, const NetworkSum& sum) {
    lack.nodes -= std::min<std::uint64_t>(lack.nodes, sum.nodes);
    lack.cpus -= std::min(lack.cpus, sum.cpus);
    for (std::size_t d = 0; d < lack.devices.size(); ++d) {
      lack.devices[d] -= std::min(lack.devices[d], sum.devices[d]);
    }
  }

  /// How much of what is lacking a leaf has, in thousandths of each.
  static std::uint64_t help(const Lack& lack, const NetworkSum& sum) {
    std::uint64_t out = 0;
    const auto add = [&](std::uint64_t lacking, std::uint64_t has) {
      if (lacking > 0) out += std::min(lacking, has) * 1000 / lacking;
    };
    add(lack.nodes, sum.nodes);
    add(lack.cpus, sum.cpus);
    for (std::size_t d = 0; d < lack.devices.size(); ++d) add(lack.devices[d], sum.devices[d]);
    return out;
  }

  /// The largest leaves until one more will do; then the smallest that does.
  void choose(std::vector<UnitIndex>& chosen, std::vector<UnitIndex>& others) const {
    while (!others.empty() && !lack_of(chosen).nothing())
      chosen.push_back(take_best(chosen, others));
  }

  UnitIndex take_best(const std::vector<UnitIndex>& chosen, std::vector<UnitIndex>& others) const {
    const Lack lack = lack_of(chosen);
    std::size_t best = 0;
    bool best_ends = false;  // with it nothing is lacking
    for (std::size_t i = 0; i < others.size(); ++i) {
      const NetworkSum& sum = sums_.of(others[i]);
      const NetworkSum& best_sum = sums_.of(others[best]);
      Lack left = lack;
      subtract(left, sum);
      const bool ends = left.nothing() && !lack.nothing();
      const bool better = ends != best_ends ? ends
                          : ends            ? sum.nodes < best_sum.nodes
                                            : help(lack, sum) > help(lack, best_sum) ||
                                       (lack.nothing() && sum.nodes > best_sum.nodes);
      if (i > 0 && !better) continue;
      best = i;
      best_ends = ends;
    }
    const UnitIndex out = others[best];
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(best));
    return out;
  }

  std::optional<std::vector<Taken>> select(std::vector<NodeIndex> nodes) {
    if (nodes.empty()) return std::nullopt;
    SelectInput some{in_.cluster, in_.usage, ask_, std::move(nodes), in_.required, in_.pool_shares};
    some.ranking = ranking_ ? &*ranking_ : nullptr;
    return select_anywhere(some);
  }

  const SelectInput& in_;
  const Ask& ask_;
  NetworkSums& sums_;
  const Topology& network_;
  std::optional<Ranking> ranking_;
};

/// One node is near enough to itself: it is the first that does, on the leaf with the fewest idle
/// nodes, so that others stay whole. Nodes are put in that order without a look at what they offer.
std::optional<std::vector<Taken>> select_one(const SelectInput& in) {
  const Topology& network = in.cluster.topology;
  const std::size_t strays = network.units.size();
  const auto bucket_of = [&](NodeIndex node) {
    const UnitIndex leaf = network.leaf_of(node);
    return leaf == Topology::kNone ? strays : std::size_t{leaf};
  };
  std::vector<std::uint32_t> idle(strays + 1, 0);
  std::vector<std::uint32_t> nodes(strays + 1, 0);
  for (const NodeIndex node : in.candidates) {
    const std::size_t bucket = bucket_of(node);
    ++nodes[bucket];
    if (bucket != strays && in.usage.at(node).idle()) ++idle[bucket];
  }
  std::vector<std::size_t> buckets;
  for (std::size_t i = 0; i <= strays; ++i) {
    if (nodes[i] > 0) buckets.push_back(i);
  }
  std::ranges::stable_sort(buckets, {}, [&](std::size_t i) { return idle[i]; });
  std::vector<std::size_t> next(strays + 1, 0);
  std::size_t begin = 0;
  for (const std::size_t i : buckets) {
    next[i] = begin;
    begin += nodes[i];
  }
  std::vector<NodeIndex> order(in.candidates.size());
  for (const NodeIndex node : in.candidates) order[next[bucket_of(node)]++] = node;
  return select_anywhere(in, &order);
}

}  // namespace

bool network_counts(const cluster::Cluster& cluster, const Ask& ask) {
  const Topology& network = cluster.topology;
  if (network.flat() || ask.any_network || ask.spread || !ask.arbitrary.empty()) return false;
  return !network.only_when_asked || ask.asks_network;
}

std::optional<std::vector<Taken>> select_near(const SelectInput& in) {
  if (in.ask.max_nodes == 1U) return select_one(in);
  NetworkSums sums(in);
  if (in.ask.segment > 0) return select_segments(in, sums);
  if (in.ask.desired_nodes > in.ask.min_nodes) {
    Ask wished = in.ask;
    wished.min_nodes = in.ask.desired_nodes;
    if (auto taken = NearSelection(in, wished, sums).run()) return taken;
  }
  return NearSelection(in, in.ask, sums).run();
}

}  // namespace berth::place
