#include "place/device_rules.h"

#include <algorithm>

namespace berth::place {

TaskBounds task_bounds(const Ask& ask, const cluster::Node& node, std::uint64_t offered_cpus) {
  TaskBounds b;
  if (ask.per_node_tasks) {
    // -n may be smaller than --ntasks-per-node: the CPUs are held all the same, devices are not.
    b = {std::min(*ask.per_node_tasks, ask.tasks.value_or(*ask.per_node_tasks)),
         *ask.per_node_tasks};
  } else if (ask.per_socket_tasks) {
    b = {*ask.per_socket_tasks, std::uint64_t{*ask.per_socket_tasks} * node.sockets};
  } else if (ask.per_core_tasks) {
    b = {*ask.per_core_tasks, std::uint64_t{*ask.per_core_tasks} * node.cores()};
  } else if (ask.per_gpu_tasks && ask.tasks) {
    if (ask.max_nodes == ask.min_nodes) {
      const std::uint64_t each = *ask.tasks / ask.min_nodes;
      b = {each, each};
    } else {
      b = {*ask.per_gpu_tasks, *ask.tasks};
    }
  } else if (ask.max_nodes == 1U && ask.tasks) {
    b = {*ask.tasks, *ask.tasks};
  } else if (ask.tasks == 1U ||
             (ask.tasks && ask.tasks == ask.max_nodes && *ask.tasks == ask.min_nodes)) {
    b = {1, 1};
  }
  if (!ask.overcommit) b.high = std::min(b.high, offered_cpus / ask.cpus_per_task);
  // A node holds --ntasks-per-node tasks' CPUs even where -n is smaller.
  if (ask.tasks && !ask.per_node_tasks) b.high = std::min<std::uint64_t>(b.high, *ask.tasks);
  b.low = std::clamp<std::uint64_t>(b.low, 1, std::max<std::uint64_t>(b.high, 1));
  return b;
}

std::uint64_t cpus_per_device(const Ask& ask, const DeviceAsk& want, Pass pass) {
  if (!want.is_gpu()) return 0;
  if (ask.cpus_per_gpu) return *ask.cpus_per_gpu;
  const std::uint64_t c = ask.cpus_per_task;
  if (ask.per_gpu_tasks) return *ask.per_gpu_tasks * c;
  if (pass != Pass::near || want.per_job == 0 || !ask.tasks || *ask.tasks == 0) return 0;
  const std::uint64_t tasks = *ask.tasks;
  if (tasks >= want.per_job && tasks % want.per_job == 0) return c * (tasks / want.per_job);
  if (want.per_job % tasks == 0 && c % (want.per_job / tasks) == 0) {
    return c / (want.per_job / tasks);
  }
  return 0;
}

std::uint64_t unit_limit(const Ask& ask, std::size_t which, const cluster::Node& node,
                         const NodeRoom& room, const Gathered& gathered, const TaskBounds& bounds,
                         std::uint64_t cpus_each) {
  const DeviceAsk& want = ask.devices[which];
  std::uint64_t limit = kMany;
  if (want.per_job > 0) limit = want.per_job;
  if (want.per_node > 0) limit = want.per_node;
  const bool memory_per_gpu =
      ask.memory_counts && ask.memory && ask.memory->per == request::MemoryPer::gpu;
  if (memory_per_gpu && want.is_gpu() && ask.memory->mb > 0) {
    limit = std::min(limit, room.memory_mb / ask.memory->mb);
  }
  if (cpus_each > 0 && ask.cpus_per_gpu) limit = std::min(limit, room.cpus / cpus_each);
  if (want.shares_gpu()) limit = std::min(limit, room.largest_share);
  if (want.per_job > 0) {
    const std::uint64_t taken = gathered.devices[which];
    if (taken >= want.per_job) {  // all are gathered: only what every node must have
      const std::uint64_t per_socket = want.per_socket * node.sockets;
      const std::uint64_t least = want.per_node > 0
                                      ? want.per_node
                                      : std::max({std::uint64_t{1}, want.per_task, per_socket});
      limit = std::min(limit, least);
    } else {  // one is kept for each node that must still come
      const std::uint64_t keep = gathered.nodes_missing > 1 ? gathered.nodes_missing - 1 : 0;
      const std::uint64_t rest = want.per_job - taken;
      limit = std::min(limit, rest > keep ? rest - keep : 1);
    }
  }
  if (want.per_task > 0) {
    limit = std::min(limit, want.per_task * std::max<std::uint64_t>(bounds.high, 1));
  }
  return limit;
}

}  // namespace berth::place
