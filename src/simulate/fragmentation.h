// Free GPUs that are of no use to the jobs of this workload.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/usage.h"
#include "simulate/trace.h"

namespace berth::simulate {

/// Take a job of the workload that wants GPUs, at random. A free GPU is stranded for it when its
/// node has not enough free CPUs, memory or GPUs (of an allowed model) for what the job needs on
/// one node. Stranded GPUs are the mean of that over the jobs: the kShapes most frequent requests,
/// each as often as it is asked for.
class Fragmentation {
 public:
  static constexpr std::size_t kShapes = 64;

  Fragmentation(const cluster::Cluster& cluster, const Trace& trace);

  struct Sample {
    double free = 0;      // GPUs, parts counted
    double stranded = 0;  // of these
  };
  [[nodiscard]] Sample sample(const cluster::Usage& usage) const;

 private:
  struct Shape {
    std::uint64_t cpus = 0;
    std::uint64_t memory_mb = 0;
    std::uint32_t gpus = 0;
    std::uint32_t milli = 0;
    double weight = 0;
  };
  struct NodeFacts {
    std::uint64_t models = 0;  // bit i: shape i may use the GPUs of this node
    int gpu = -1;              // positions in Node::gres
    int shard = -1;
    std::uint32_t cpus = 0;
  };

  const cluster::Cluster* cluster_;
  std::vector<Shape> shapes_;
  std::vector<NodeFacts> nodes_;
};

}  // namespace berth::simulate
