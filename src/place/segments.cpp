#include "place/segments.h"

#include <algorithm>
#include <tuple>

namespace berth::place {
namespace {

using cluster::NodeIndex;
using cluster::Topology;
using cluster::UnitIndex;

/// Sizes that are tried where the number of nodes is open.
constexpr std::uint32_t kMostSizes = 64;

/// One number of nodes, which is a whole number of segments.
class Segments {
 public:
  Segments(const SelectInput& in, NetworkSums& sums, std::uint32_t nodes)
      : in_(in), sums_(sums), network_(in.cluster.topology), nodes_(nodes), ask_(in.ask) {
    segment_ = std::min(in.ask.segment, nodes);
    ask_.min_nodes = ask_.desired_nodes = nodes;
    ask_.max_nodes = nodes;
    ask_.nodes_range = false;
    if (!ask_.tasks) {
      ask_.total_cpus =
          std::max<std::uint64_t>(ask_.total_cpus, std::uint64_t{nodes} * ask_.cpus_per_task);
    }
  }

  std::optional<std::vector<Taken>> run() {
    for (const std::uint32_t weight : sums_.weights()) {
      sums_.count_up_to(weight);
      for (std::uint32_t level = 0; level < network_.levels(); ++level) {
        if (auto taken = on_level(level)) return taken;
      }
      std::vector<UnitIndex> all;
      for (UnitIndex i = 0; i < network_.units.size(); ++i) {
        if (network_.units[i].level == 0) all.push_back(i);
      }
      if (network_.kind == cluster::NetworkKind::block && sums_.all().required == required()) {
        if (auto taken = within(all)) return taken;
      }
    }
    return std::nullopt;
  }

 private:
  struct Share {
    UnitIndex leaf;
    std::uint32_t segments;
  };

  [[nodiscard]] std::size_t required() const { return in_.required.size(); }
  [[nodiscard]] std::uint32_t room(UnitIndex leaf) const {
    const std::uint32_t whole = sums_.of(leaf).nodes / segment_;
    return ask_.spread_segments ? std::min(whole, 1U) : whole;
  }

  std::optional<std::vector<Taken>> on_level(std::uint32_t level) {
    std::vector<UnitIndex> units;
    for (UnitIndex i = 0; i < network_.units.size(); ++i) {
      if (network_.units[i].level == level && sums_.holds(sums_.of(i), ask_)) units.push_back(i);
    }
    std::ranges::stable_sort(units, {}, [&](UnitIndex i) { return sums_.of(i).nodes; });
    for (const UnitIndex unit : units) {
      if (auto taken = within(network_.units[unit].leaves)) return taken;
    }
    return std::nullopt;
  }

  std::optional<std::vector<Taken>> within(const std::vector<UnitIndex>& leaves) {
    std::uint32_t missing = nodes_ / segment_;
    std::vector<Share> shares;
    std::vector<UnitIndex> others;
    for (const UnitIndex leaf : leaves) {
      const std::uint32_t needed = (sums_.of(leaf).required + segment_ - 1) / segment_;
      if (needed > room(leaf) || needed > missing) return std::nullopt;
      if (needed > 0) {
        shares.push_back({leaf, needed});
        missing -= needed;
      } else if (room(leaf) > 0) {
        others.push_back(leaf);
      }
    }
    for (Share& share : shares) {
      const std::uint32_t more = std::min(missing, room(share.leaf) - share.segments);
      share.segments += more;
      missing -= more;
    }
    while (missing > 0 && !others.empty()) {
      const std::size_t best = best_of(others, missing);
      const std::uint32_t here = std::min(missing, room(others[best]));
      shares.push_back({others[best], here});
      missing -= here;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(best));
    }
    if (missing > 0 || (in_.max_leaves && shares.size() > *in_.max_leaves)) return std::nullopt;
    if (auto taken = select(shares, false)) return taken;
    return select(shares, true);
  }

  /// The leaf with least to spare that takes all that is missing, or else the one that takes most.
  [[nodiscard]] std::size_t best_of(const std::vector<UnitIndex>& others,
                                    std::uint32_t missing) const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < others.size(); ++i) {
      const std::uint32_t has = std::min(room(others[i]), missing);
      const std::uint32_t best_has = std::min(room(others[best]), missing);
      const bool smaller = sums_.of(others[i]).nodes < sums_.of(others[best]).nodes;
      if (has > best_has || (has == best_has && smaller)) best = i;
    }
    return best;
  }

  /// The nodes of each leaf by weight and number, or (`emptiest`) those with fewest cores in use
  /// first.
  std::optional<std::vector<Taken>> select(const std::vector<Share>& shares, bool emptiest) {
    std::vector<NodeIndex> nodes;
    for (const Share& share : shares) {
      std::vector<NodeIndex> here = sums_.nodes_of(share.leaf);
      std::ranges::stable_sort(here, {}, [&](NodeIndex n) {
        const cluster::Node& node = in_.cluster.nodes[n];
        const bool optional = !std::ranges::binary_search(in_.required, n);
        const std::uint64_t used = emptiest ? in_.usage.at(n).cores.count() : 0;
        return std::tuple(optional, node.weight, used);
      });
      here.resize(std::size_t{share.segments} * segment_);
      nodes.insert(nodes.end(), here.begin(), here.end());
    }
    std::ranges::sort(nodes);
    const SelectInput exact{in_.cluster,      in_.usage,    ask_,
                            std::move(nodes), in_.required, in_.pool_shares};
    return select_anywhere(exact);
  }

  const SelectInput& in_;
  NetworkSums& sums_;
  const Topology& network_;
  std::uint32_t nodes_;
  std::uint32_t segment_ = 1;
  Ask ask_;
};

}  // namespace

std::optional<std::vector<Taken>> select_segments(const SelectInput& in, NetworkSums& sums) {
  const Ask& ask = in.ask;
  const std::uint32_t usable = sums.all().nodes;
  const std::uint32_t most = std::min(ask.max_nodes.value_or(usable), usable);
  const auto fits = [&](std::uint32_t nodes) {
    return nodes >= ask.min_nodes && nodes <= most &&
           (nodes % ask.segment == 0 || (nodes < ask.segment && nodes == ask.min_nodes));
  };
  std::uint32_t tried = 0;
  const auto attempt = [&](std::uint32_t nodes) -> std::optional<std::vector<Taken>> {
    if (!fits(nodes) || ++tried > kMostSizes) return std::nullopt;
    return Segments(in, sums, nodes).run();
  };
  for (std::uint32_t nodes = std::min(ask.desired_nodes, most); nodes >= ask.min_nodes && nodes > 0;
       --nodes) {
    if (auto taken = attempt(nodes)) return taken;
  }
  for (std::uint32_t nodes = ask.desired_nodes + 1; nodes <= most; ++nodes) {
    if (auto taken = attempt(nodes)) return taken;
  }
  return std::nullopt;
}

}  // namespace berth::place
