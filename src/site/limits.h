// What jobs get that do not say it, and the most they may have: of the cluster and of partitions.
#pragma once

#include "conf/slurm_conf.h"

namespace berth::site {

/// `to`: cluster::Settings or cluster::Partition.
template <class To>
void set_limits(const conf::JobLimits& limits, To& to) {
  to.def_mem_per_cpu_mb = conf::value_of(limits.def_mem_per_cpu_mb);
  to.def_mem_per_node_mb = conf::value_of(limits.def_mem_per_node_mb);
  to.def_mem_per_gpu_mb = conf::value_of(limits.def_mem_per_gpu_mb);
  to.max_mem_per_cpu_mb = conf::value_of(limits.max_mem_per_cpu_mb);
  to.max_mem_per_node_mb = conf::value_of(limits.max_mem_per_node_mb);
  to.def_cpu_per_gpu = conf::value_of(limits.def_cpu_per_gpu);
}

}  // namespace berth::site
