// The lines of slurm.conf that describe one thing each, from pairs to values.
#pragma once

#include <span>

#include "conf/lines.h"
#include "conf/slurm_conf.h"

namespace berth::conf {

/// One key of a NodeName= line (all but NodeName itself) into `line`.
void apply_node_pair(const Pair& pair, NodeLine& line, Complaints& complaints);
/// One key of a PartitionName= line (all but PartitionName itself) into `line`.
void apply_partition_pair(const Pair& pair, PartitionLine& line, Complaints& complaints);
/// Def/Max memory keys, DefCpuPerGPU and JobDefaults. False when the key is none of them.
bool apply_limit_pair(const Pair& pair, JobLimits& limits, Complaints& complaints);
/// A key twice on one line: a warning, the last one counts.
void warn_of_repeats(std::span<const Pair> pairs, Complaints& complaints);

}  // namespace berth::conf
