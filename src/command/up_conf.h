// The slurm.conf and gres.conf that `berth up` writes.
#pragma once

#include <string>

#include "cluster/cluster.h"
#include "device/machine.h"

namespace berth::command {

/// Files that `berth up` wrote hold a line that begins with this; one without it is the user's own.
inline constexpr std::string_view kMadeByUp = "# Made by berth up";

struct ConfTexts {
  std::string slurm;
  std::string gres;  // "" = no file
};

/// This machine as a cluster of one node. Memory defaults to each CPU's share.
cluster::Cluster cluster_of(const device::Machine& machine);

/// `made_from` is how it was asked for ("--emulate 4x4:a100"), `user` runs it, `emulated`: what
/// slurm.conf says counts, not what the nodes find.
ConfTexts write_conf(const cluster::Cluster& cluster, std::string_view made_from,
                     std::string_view user, std::string_view host, bool emulated);

/// "4 nodes node[1-4]: 16 CPUs, 64G, 4 a100 each", one line for each kind of node.
std::vector<std::string> describe_nodes(const cluster::Cluster& cluster);

}  // namespace berth::command
