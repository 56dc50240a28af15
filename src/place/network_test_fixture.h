// Clusters with switches or blocks, in code, for tests: nodes n1, n2, … of 16 cores, some with
// GPUs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "place/corpus_cluster_test_fixture.h"

namespace berth::place::corpus {

inline cluster::Cluster plain_nodes(int count) {
  cluster::Cluster c;
  for (int i = 1; i <= count; ++i) {
    c.nodes.push_back(corpus::node("n" + std::to_string(i), 1, {}, corpus::four_a100()));
  }
  c.index_nodes();
  c.settings.gres_types = {"gpu"};
  corpus::add_partition(c, "all", {}, true);
  return c;
}

inline cluster::NetworkUnit leaf(std::string name, std::vector<cluster::NodeIndex> nodes,
                                 std::optional<cluster::UnitIndex> parent = {}) {
  cluster::NetworkUnit unit;
  unit.name = std::move(name);
  unit.nodes = std::move(nodes);
  unit.parent = parent;
  return unit;
}

/// Leaves of the sizes given, each pair of them below a switch, and all below "core".
inline cluster::Cluster tree(const std::vector<int>& leaf_sizes) {
  int count = 0;
  for (const int size : leaf_sizes) count += size;
  cluster::Cluster c = plain_nodes(count);
  cluster::Topology& network = c.topology;
  network.kind = cluster::NetworkKind::tree;
  cluster::NodeIndex next = 0;
  const auto leaves = static_cast<cluster::UnitIndex>(leaf_sizes.size());
  const cluster::UnitIndex pairs = (leaves + 1) / 2;
  for (cluster::UnitIndex i = 0; i < leaves; ++i) {
    std::vector<cluster::NodeIndex> nodes;
    for (int n = 0; n < leaf_sizes[i]; ++n) nodes.push_back(next++);
    network.units.push_back(leaf("leaf" + std::to_string(i + 1), nodes, leaves + i / 2));
  }
  for (cluster::UnitIndex p = 0; p < pairs; ++p) {
    network.units.push_back(leaf("pair" + std::to_string(p + 1), {}, leaves + pairs));
    for (cluster::UnitIndex i = 2 * p; i < std::min(2 * p + 2, leaves); ++i) {
      network.units.back().children.push_back(i);
    }
  }
  network.units.push_back(leaf("core", {}));
  for (cluster::UnitIndex p = 0; p < pairs; ++p) {
    network.units.back().children.push_back(leaves + p);
  }
  network.finish(c.nodes.size());
  return c;
}

/// Blocks of `size` nodes, joined to what `sizes` say.
inline cluster::Cluster blocks(int count, int size, std::vector<std::uint32_t> sizes) {
  cluster::Cluster c = plain_nodes(count * size);
  cluster::Topology& network = c.topology;
  network.kind = cluster::NetworkKind::block;
  network.block_sizes = std::move(sizes);
  cluster::NodeIndex next = 0;
  for (int i = 1; i <= count; ++i) {
    std::vector<cluster::NodeIndex> nodes;
    for (int n = 0; n < size; ++n) nodes.push_back(next++);
    network.units.push_back(leaf("b" + std::to_string(i), nodes));
  }
  cluster::join_blocks(network);
  network.finish(c.nodes.size());
  return c;
}

}  // namespace berth::place::corpus
