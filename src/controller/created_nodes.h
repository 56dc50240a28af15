// Nodes that scontrol created, on top of slurm.conf.
#pragma once

#include <string>
#include <vector>

#include "controller/setup.h"
#include "job/state.h"

namespace berth::controller {

/// What is kept of a node that scontrol created.
struct CreatedNode {
  std::string name;
  std::string line;  // "NodeName=n1 CPUs=4 …"
};

std::vector<CreatedNode> created_nodes(const job::State& state);
std::vector<CreatedNode> created_nodes(const std::vector<wire::NodeRecord>& records);

/// `setup` with these nodes and no others beside those of slurm.conf: its cluster, and what agents
/// are told. An error names the line that does not fit.
Result<Setup> with_nodes(Setup setup, const std::vector<CreatedNode>& nodes);

/// The same; what does not fit any more (the node is in slurm.conf by now) is left out and told in
/// `troubles`.
Setup with_fitting_nodes(Setup setup, const std::vector<CreatedNode>& nodes,
                         std::vector<std::string>& troubles);

}  // namespace berth::controller
