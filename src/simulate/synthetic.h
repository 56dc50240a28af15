// A made-up workload, so that scale can be tried without a trace: the same jobs for the same seed.
#pragma once

#include <string_view>

#include "base/result.h"
#include "cluster/cluster.h"
#include "simulate/trace.h"

namespace berth::simulate {

struct Synthetic {
  std::uint64_t jobs = 10'000;
  double load = 0.9;  // of all GPUs (of all CPUs where there are none), while jobs arrive
  std::uint32_t users = 50;
  std::uint32_t most_gpus = 64;  // of one job
};

/// "jobs=1000000,load=0.9,users=50,gpus=64".
Result<Synthetic> read_synthetic(std::string_view text);

/// Jobs that ask for 0, 1, 2, 4 … GPUs with their share of a node or less, run from a minute to a
/// day (every length as likely as its double), and say a limit that is somewhat longer.
Trace synthesize(const Synthetic& what, const cluster::Cluster& cluster, std::uint64_t seed);

}  // namespace berth::simulate
