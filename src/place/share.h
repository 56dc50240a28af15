// From the shares taken of the nodes to tasks, cores and devices on each (placement-jobs.md §6–§8).
#pragma once

#include <vector>

#include "cluster/usage.h"
#include "place/ask.h"
#include "place/select.h"

namespace berth::place {

/// §6: tasks and CPUs of each taken node. CPUs are what tasks use, before whole cores are taken.
struct TasksHere {
  std::uint32_t tasks = 0;
  std::uint32_t cpus = 0;
};
std::vector<TasksHere> share_tasks(const cluster::Cluster& cluster, const Ask& ask,
                                   const std::vector<Taken>& taken);

/// §7: which `count` cores of the allowed set. `tasks` matters when a task has several CPUs.
Bits choose_cores(const cluster::Node& node, const Ask& ask, const Bits& allowed,
                  std::uint32_t count, std::uint32_t tasks);

/// §8: which devices, for all nodes together (a job total is gathered over the nodes). False when
/// the devices could not be found after all.
bool choose_devices(const cluster::Cluster& cluster, const cluster::UsageView& usage,
                    const Ask& ask, const std::vector<Taken>& taken,
                    std::vector<cluster::NodeShare>& shares);

}  // namespace berth::place
