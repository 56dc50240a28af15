// GPUs and CPUs for ranks that somebody else starts on a node: mpirun, torchrun. What a process
// there may use is told it in one variable, so that `berth bind` needs nobody to ask; the choice is
// that of srun --gpus-per-task.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "cluster/usage.h"

namespace berth::place {

/// What a process holds on its node: "2x8x1 cores 0-15 gpus 0@0,1@0,2@1,3@1" (sockets, cores,
/// threads; a GPU and the sockets it is near, "*" = all), "uuids MIG-1,MIG-2" where these are found
/// by name, "told cuda,rocr" where not all variables tell of them, "daemon" in a step of mpirun's
/// daemons, and "fenced" where GPUs are counted from 0 inside the job.
struct LocalShare {
  cluster::Node node;
  cluster::NodeShare share;
  bool daemon = false;  // SLURM_LOCALID and the like number daemons, not ranks
  bool fenced = false;

  /// The ids by which a process of the job finds these GPUs.
  [[nodiscard]] Bits visible(const Bits& gpus) const;
  /// CUDA_VISIBLE_DEVICES and its like for them.
  [[nodiscard]] std::map<std::string, std::string> variables(const Bits& gpus) const;
  /// All of these are usual.
  [[nodiscard]] bool usual_variables() const;
  /// All that must be set in the environment of a rank so that it finds its own GPUs and no others;
  /// nothing where the job has no GPU here.
  [[nodiscard]] std::map<std::string, std::string> rank_variables(
      const Bits& own, const std::map<std::string, std::string>& environment) const;
};
inline constexpr const char* kLocalShareVariable = "BERTH_NODE_SHARE";
inline constexpr const char* kCudaList = "CUDA_VISIBLE_DEVICES";
inline constexpr const char* kTaskCpus = "BERTH_TASK_CPUS";
std::string local_share_text(const cluster::Node& node, const cluster::NodeShare& share,
                             bool fenced, bool daemon = false);
Result<LocalShare> read_local_share(std::string_view text);

struct LocalRank {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;  // on this node
  // Unset: all GPUs divided, or shared where there are fewer than ranks.
  std::optional<std::uint32_t> gpus_per_rank{};
  std::uint32_t cpus_per_rank = 1;
};
struct LocalChoice {
  Bits gpus;  // device indices on the node
  Bits cpus;  // CPU ids
  bool bound = false;
  bool shares_gpu = false;  // with other ranks
};
Result<LocalChoice> choose_for_rank(const LocalShare& local, const LocalRank& rank);
/// The same for all ranks of the node, by rank; whose own `any` says is of no interest.
Result<std::vector<LocalChoice>> choose_for_ranks(const LocalShare& local, const LocalRank& any);

}  // namespace berth::place
