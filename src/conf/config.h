// The configuration of a cluster: slurm.conf, gres.conf, cgroup.conf and topology.conf together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conf/cgroup_conf.h"
#include "conf/gres_conf.h"
#include "conf/slurm_conf.h"
#include "conf/source.h"
#include "conf/topology_conf.h"

namespace berth::conf {

struct Config {
  SlurmConf slurm;
  std::optional<GresConf> gres;      // unset: there is no gres.conf
  std::optional<CgroupConf> cgroup;  // unset: there is no cgroup.conf
  /// What jobs are fenced in by; nullptr = nothing. As in Slurm it is the work of task/cgroup.
  [[nodiscard]] const CgroupConf* fence() const;
  std::optional<TopologyConf> topology;  // unset: the network is flat
  std::vector<std::string> warnings;
  std::vector<UnusedKeys> unused;
};

/// Reads all of these files. The error holds every complaint found, at most Complaints::kMaxErrors
/// and how many more.
Result<Config> read_config(const FileSource& source);

}  // namespace berth::conf
