// Which of a step's GPUs each task on one node sees (--gpu-bind, and the bindings that per-task
// GPUs and --ntasks-per-gpu imply).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bits.h"
#include "base/result.h"
#include "cluster/cluster.h"
#include "cluster/usage.h"
#include "request/request.h"

namespace berth::place {

struct TaskGpus {
  Bits gpus;                      // device indices on the node
  std::vector<Message> messages;  // printed on the task's stderr; the step goes on
};

/// `share` is what the step holds on the node; `masks` are the tasks' CPUs by local id (all CPUs of
/// the node for a task without a mask). `fenced`: devices are fenced off (ConstrainDevices), so
/// that ids of maps and masks count inside the step.
std::vector<TaskGpus> bind_gpus(const cluster::Node& node, const cluster::NodeShare& share,
                                const std::vector<Bits>& masks,
                                const std::optional<request::GpuBind>& bind, bool fenced);

/// srun --launcher=mpi: every task its own GPUs, or its share of one where there are more tasks.
/// Each pair: tasks and GPUs of a node. None when a node has no GPU.
std::optional<request::GpuBind> gpu_bind_of_ranks(
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& nodes);

/// The binding that a step's own options imply: per-task GPUs (or shards) or tasks per GPU.
std::optional<request::GpuBind> implied_gpu_bind(const std::vector<request::GresAsk>& per_task,
                                                 std::optional<std::uint32_t> ntasks_per_gpu);

}  // namespace berth::place
