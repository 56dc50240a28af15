// The fields of sinfo: letters of -o, names of -O, headers and values of a group of nodes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "command/columns.h"
#include "wire/info.pb.h"

namespace berth::command {

/// A line of sinfo: nodes that look the same in what is shown, of one partition (or of several when
/// the partition is not shown).
struct NodeGroup {
  const wire::PartitionInfo* partition = nullptr;
  std::int64_t partition_order = 0;          // position in slurm.conf
  std::vector<const wire::NodeInfo*> nodes;  // empty: a partition without (matching) nodes
  std::int64_t first_node = 0;               // position of nodes.front() in the reply
};

std::span<const Field<NodeGroup>> node_fields();

/// How a field decides about groups: nodes with different values of it stand in different lines.
enum class Grouping {
  same,   // always
  exact,  // only with --exact; otherwise "4+" stands for different numbers
  free,   // never: counts and sums
};
Grouping grouping_of(std::size_t field);

struct NodeCounts {
  std::uint64_t allocated = 0, idle = 0, other = 0, total = 0;
};
NodeCounts count_nodes(const NodeGroup& group);
NodeCounts count_cpus(const NodeGroup& group);
/// "cpu[1-2],gpu[1-6]".
std::string node_names(const NodeGroup& group);

}  // namespace berth::command
