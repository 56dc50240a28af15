#include "cluster/topology.h"

#include <algorithm>

#include "text/hostlist.h"

namespace berth::cluster {

std::optional<UnitIndex> Topology::find(std::string_view unit) const {
  const auto at = std::ranges::find(units, unit, &NetworkUnit::name);
  if (at == units.end()) return std::nullopt;
  return static_cast<UnitIndex>(at - units.begin());
}

std::vector<UnitIndex> Topology::leaves_of(const std::vector<NodeIndex>& nodes) const {
  std::vector<UnitIndex> out;
  for (const NodeIndex node : nodes) {
    if (leaf_of(node) != kNone) out.push_back(leaf_of(node));
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

std::string Topology::address(NodeIndex node, std::string_view node_name) const {
  std::string out(node_name);
  if (kind != NetworkKind::tree || leaf_of(node) == kNone) return out;
  for (std::optional<UnitIndex> at = leaf_of(node); at; at = units[*at].parent) {
    out.insert(0, units[*at].name + ".");
  }
  return out;
}

std::string Topology::address_pattern(NodeIndex node) const {
  std::string out = "node";
  if (kind != NetworkKind::tree || leaf_of(node) == kNone) return out;
  for (std::optional<UnitIndex> at = leaf_of(node); at; at = units[*at].parent) {
    out.insert(0, "switch.");
  }
  return out;
}

std::string_view Topology::leaf_word(std::size_t count) const {
  if (kind == NetworkKind::block) return count == 1 ? "block" : "blocks";
  return count == 1 ? "switch" : "switches";
}

void Topology::add_below(UnitIndex leaf) {
  std::uint32_t level = 0;
  for (std::optional<UnitIndex> at = leaf; at; at = units[*at].parent) {
    NetworkUnit& unit = units[*at];
    unit.level = std::max(unit.level, level);
    level = unit.level + 1;
    unit.leaves.push_back(leaf);
    if (*at != leaf) {
      unit.nodes.insert(unit.nodes.end(), units[leaf].nodes.begin(), units[leaf].nodes.end());
    }
    levels_ = std::max(levels_, level);
  }
}

void Topology::finish(std::size_t node_count) {
  leaf_of_.assign(node_count, kNone);
  levels_ = 0;
  for (UnitIndex i = 0; i < units.size(); ++i) {
    if (!units[i].children.empty()) continue;
    std::ranges::sort(units[i].nodes);
    for (const NodeIndex node : units[i].nodes) leaf_of_[node] = i;
    add_below(i);
  }
  for (NetworkUnit& unit : units) {
    std::ranges::sort(unit.nodes);
    std::ranges::sort(unit.leaves);
  }
}

void join_blocks(Topology& topology) {
  std::vector<NetworkUnit>& units = topology.units;
  const auto blocks = static_cast<UnitIndex>(units.size());
  if (blocks == 0 || topology.block_sizes.empty()) return;
  UnitIndex below = 0;       // where the units of the level below begin …
  UnitIndex count = blocks;  // … and how many they are
  std::uint32_t joined = 1;  // blocks in each of these
  for (std::size_t level = 1; level < topology.block_sizes.size(); ++level) {
    const std::uint32_t wanted = topology.block_sizes[level] / topology.block_sizes[0];
    const std::uint32_t each = wanted / joined;
    const auto begin = static_cast<UnitIndex>(units.size());
    for (UnitIndex first = 0; first < count; first += each) {
      NetworkUnit unit;
      const auto at = static_cast<UnitIndex>(units.size());
      for (UnitIndex i = first; i < std::min(first + each, count); ++i) {
        unit.children.push_back(below + i);
        units[below + i].parent = at;
      }
      std::vector<std::string> names;
      const UnitIndex first_block = first * joined;
      const UnitIndex last_block = std::min<UnitIndex>(first_block + wanted, blocks);
      for (UnitIndex i = first_block; i < last_block; ++i) names.push_back(units[i].name);
      unit.name = text::compress_hostlist(names);
      units.push_back(std::move(unit));
    }
    below = begin;
    count = static_cast<UnitIndex>(units.size()) - begin;
    joined = wanted;
  }
}

}  // namespace berth::cluster
