// From slurm.conf to what the controller works with. Read at start and again by a reconfiguration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "conf/config.h"
#include "controller/disclosure.h"
#include "job/types.h"
#include "schedule/schedule.h"
#include "wire/agent.pb.h"

namespace berth::controller {

struct Setup {
  conf::Config config;
  cluster::Cluster cluster;
  job::Policy policy;
  schedule::Options schedule;
  wire::NodeConfig node_config;
  std::string conf_path;  // real path
  std::uint32_t slurm_uid = 0;
  Disclosure disclosure;
  std::vector<std::string> notes;  // what is wrong, not planned for, or taken otherwise
  [[nodiscard]] const conf::DaemonKeys& keys() const { return config.slurm.daemon; }
};

/// Who is in one of the groups: by their own group, or as a member.
job::PartitionPolicy::Members members_of(const std::vector<std::string>& groups);

/// What policy reads of a PartitionName line.
job::PartitionPolicy partition_policy(const conf::PartitionRules& rules);

/// Reads the file and the gres.conf and cgroup.conf beside it. An error where this machine is not
/// the controller's, unless the cluster is pretended: then its slurm.conf may be that of another
/// one.
Result<Setup> read_setup(const std::string& conf, bool emulated);

}  // namespace berth::controller
