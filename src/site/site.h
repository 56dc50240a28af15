// From a configuration, or from an --emulate text, to the cluster model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "conf/config.h"

namespace berth::site {

inline constexpr std::size_t kMaxGpusPerNode = 1024;
inline constexpr std::size_t kMaxDevices = std::size_t{1} << 20;  // of the whole cluster

struct Site {
  cluster::Cluster cluster;
  std::vector<std::string> notes;        // what is not known and how it was taken
  std::vector<std::string> warnings;     // what is wrong or not planned for, with file and line
  std::vector<conf::UnusedKeys> unused;  // keys that make no difference to a plan
};

/// The cluster that the files describe.
Result<Site> from_config(const conf::Config& config);

/// Reads slurm.conf, gres.conf and cgroup.conf and builds the cluster.
Result<Site> read_site(const conf::FileSource& source);

/// "4x4:a100" (nodes x GPUs), "gpu[1-4]:cpus=16:mem=64G:gpus=a100x4,cpu[1-2]:cpus=32".
Result<Site> from_emulate_spec(std::string_view spec);

}  // namespace berth::site
