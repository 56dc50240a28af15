// A configuration as the simulator runs it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "conf/source.h"
#include "job/types.h"
#include "schedule/schedule.h"

namespace berth::simulate {

/// --set KEY=VALUE: takes the place of that key in slurm.conf; of PartitionName and NodeName, of
/// the line with the same name.
struct Override {
  std::string key;
  std::string value;
};
Result<Override> read_override(std::string_view text);

struct Setup {
  std::string label;
  cluster::Cluster cluster;
  job::Policy policy;
  schedule::Options schedule;
  std::vector<std::string> notes;
};

/// Reads slurm.conf and the files beside it. Policy is the controller's, but for what only makes
/// sense of real time: ended jobs leave memory at once and MaxJobCount does not count.
Result<Setup> read_setup(const conf::FileSource& source, const std::vector<Override>& overrides,
                         std::string label);

/// slurm.conf with the overrides in it.
std::string overridden(std::string_view text, const std::vector<Override>& overrides);

}  // namespace berth::simulate
