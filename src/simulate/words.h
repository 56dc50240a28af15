// From what a trace asks for to the words of sbatch on this cluster.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "simulate/trace.h"

namespace berth::simulate {

/// Reads asks by what the cluster has: models it knows, partitions, shards. What cannot be said on
/// it is left out and counted in notes().
class Wording {
 public:
  explicit Wording(const cluster::Cluster& cluster);

  /// Options of sbatch but for the time limit.
  std::vector<std::string> words(const Ask& ask, std::uint64_t jobs);
  /// "a model of GPU this cluster has not, any is taken: 12 jobs (k80)", …
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  void gpu_words(const Ask& ask, std::uint64_t jobs, std::vector<std::string>& out);
  struct Left {
    std::uint64_t jobs = 0;
    std::string example;
  };

  const cluster::Cluster* cluster_;
  std::map<std::string, std::string> types_;     // lower case → as the cluster writes it
  std::map<std::string, std::string> features_;  // the same
  std::uint64_t shards_ = 0;                     // of one GPU; 0 = there are none
  std::uint64_t memory_per_cpu_mb_ = 0;          // for who says nothing; 0 = the cluster's default
  std::map<std::string, Left> left_;             // what was left out
};

}  // namespace berth::simulate
