// What a node of the job has left for a new step, and what the step takes of it: devices first,
// then cores near them, then memory (spec placement-steps.md §3.1, §3.3, §4.2, §4.3).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/usage.h"
#include "place/step_request.h"

namespace berth::place {

/// What keeps a step off a node of its job.
enum class StepObstacle { none, cpus, memory, gres, node_down };

/// One node of the job as a new step finds it.
struct StepRoom {
  std::size_t position = 0;  // in the job
  const cluster::Node* node = nullptr;
  const cluster::NodeShare* job = nullptr;
  Bits free_cores;           // job cores that no counted step holds
  std::uint32_t usable = 0;  // CPUs that tasks of this step could use here
  std::uint64_t free_memory_mb = 0;
  std::vector<cluster::GresShare> free;  // units of the job's devices not held by counted steps
  bool idle = true;                      // no step of the job runs here
  StepObstacle obstacle = StepObstacle::none;
  std::string missing;  // name of the resource, for StepObstacle::gres

  [[nodiscard]] bool candidate() const { return obstacle == StepObstacle::none; }
  /// Free units of a resource, of one type or of any ("").
  [[nodiscard]] std::uint64_t free_of(const std::string& name, const std::string& type) const;
  /// Tasks that fit, at least one.
  [[nodiscard]] std::uint32_t tasks(const StepAsk& ask) const;
};

/// All nodes of the job, with `running` steps holding what they hold ({}: an empty job).
std::vector<StepRoom> find_room(const cluster::Cluster& cluster, const JobFacts& job,
                                const StepAsk& ask, std::span<const StepPlan> running);

/// Threads of a core that tasks of the step use on a node.
std::uint32_t threads_used(const cluster::Node& node, const StepAsk& ask);

/// How much of a resource the step needs on a node that runs `tasks` of its tasks; `of_step` is the
/// node's part of a --gpus total.
std::vector<request::GresAsk> gres_needed(const StepRoom& room, const StepGres& gres,
                                          std::uint32_t tasks,
                                          const std::vector<request::GresAsk>& of_step);

/// Splits --gpus over the chosen nodes: one list of asks for each.
std::vector<std::vector<request::GresAsk>> split_over_nodes(
    const std::vector<request::GresAsk>& total, std::span<const StepRoom* const> nodes,
    bool overlap);

/// Takes what the step holds on one node; the code says what was short.
Result<cluster::NodeShare> take_share(const StepRoom& room, const StepAsk& ask, std::uint32_t tasks,
                                      const std::vector<request::GresAsk>& of_step);

}  // namespace berth::place
