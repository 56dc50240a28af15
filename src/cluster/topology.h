// The network of a cluster: which nodes are near each other. Switches in a tree, or blocks of nodes
// that are joined to larger ones; both are units that hold nodes, the smallest of them leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cluster {

using NodeIndex = std::uint32_t;  // as in cluster.h
using UnitIndex = std::uint32_t;  // position in Topology::units

enum class NetworkKind {
  flat,   // all nodes are equally near
  tree,   // TopologyPlugin=topology/tree
  block,  // TopologyPlugin=topology/block
};

/// A switch, a block, or neighbouring blocks taken together.
struct NetworkUnit {
  std::string name;              // of blocks taken together: "b[1-2]"
  std::uint32_t level = 0;       // 0 = leaf: a switch with nodes, a block
  std::uint32_t link_speed = 1;  // shown, not used
  std::optional<UnitIndex> parent;
  std::vector<UnitIndex> children;
  // What lies below follows from the rest: finish().
  std::vector<NodeIndex> nodes;   // ascending
  std::vector<UnitIndex> leaves;  // ascending; a leaf has itself
};

struct Topology {
  static constexpr UnitIndex kNone = ~UnitIndex{0};

  NetworkKind kind = NetworkKind::flat;
  std::string name = "default";
  bool only_when_asked = false;  // TopologyParam=TopoOptional: only for jobs with --switches
  std::vector<NetworkUnit> units;
  /// Nodes in a block of each level (BlockSizes), smallest first.
  std::vector<std::uint32_t> block_sizes;

  [[nodiscard]] bool flat() const { return kind == NetworkKind::flat; }
  /// The leaf a node hangs on, or kNone.
  [[nodiscard]] UnitIndex leaf_of(NodeIndex node) const {
    return node < leaf_of_.size() ? leaf_of_[node] : kNone;
  }
  [[nodiscard]] std::uint32_t levels() const { return levels_; }
  [[nodiscard]] std::optional<UnitIndex> find(std::string_view unit) const;
  /// Leaves that these nodes use, ascending; nodes on none are not counted.
  [[nodiscard]] std::vector<UnitIndex> leaves_of(const std::vector<NodeIndex>& nodes) const;

  /// SLURM_TOPOLOGY_ADDR and its pattern: "core.leaf1.n3", "switch.switch.node".
  [[nodiscard]] std::string address(NodeIndex node, std::string_view node_name) const;
  [[nodiscard]] std::string address_pattern(NodeIndex node) const;
  /// "switch" or "block", with an s where there are several.
  [[nodiscard]] std::string_view leaf_word(std::size_t count) const;

  /// Call once `units` have names, parents, children, and leaves have their nodes: works out levels
  /// and what lies below. Parents must not form a circle.
  void finish(std::size_t node_count);

 private:
  void add_below(UnitIndex leaf);
  std::vector<UnitIndex> leaf_of_;  // by node
  std::uint32_t levels_ = 0;
};

/// Blocks that are neighbours in the list, as many as `block_sizes` say, become units of the levels
/// above. Call before finish(); the first unit's size is the base.
void join_blocks(Topology& topology);

}  // namespace berth::cluster
