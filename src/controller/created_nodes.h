// Nodes on top of slurm.conf: scontrol created them, or their machines joined as new ones.
#pragma once

#include <string>
#include <vector>

#include "controller/setup.h"
#include "job/state.h"
#include "wire/identity.pb.h"

namespace berth::controller {

/// What is kept of a node that scontrol created.
struct CreatedNode {
  std::string name;
  std::string line;  // "NodeName=n1 CPUs=4 …"
};

/// Whether a machine can be called so.
Result<void> check_node_name(const std::string& name);
/// A machine that joins as a new node. Its word counts for what it has; what cannot be a node's
/// name or a word of a NodeName line is refused.
Result<CreatedNode> node_of_machine(const std::string& name, const wire::Hardware& hardware);

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
