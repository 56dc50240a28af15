// Tasks and CPUs of each node of a job (placement-jobs.md §6).
#include <algorithm>

#include "place/share.h"

namespace berth::place {
namespace {

class TaskSharing {
 public:
  TaskSharing(const cluster::Cluster& cluster, const Ask& ask, const std::vector<Taken>& taken)
      : cluster_(cluster), ask_(ask), taken_(taken), out_(taken.size()) {}

  std::vector<TasksHere> run() {
    left_ = all_tasks();
    const std::int64_t c = ask_.cpus_per_task;
    for (std::size_t i = 0; i < taken_.size(); ++i) give(i, arbitrary(i));
    if (ask_.overcommit) {
      // Tasks share one task's CPUs; only devices of their own still bound how many go where.
      if (has_per_task_devices()) rounds(false);
    } else if (ask_.arbitrary.empty()) {
      fill_touched_cores();
      rounds(true);
      rounds(false);
    }
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      auto cpus = static_cast<std::uint32_t>((ask_.overcommit ? 1 : out_[i].tasks) * c);
      if (ask_.cpus_per_gpu) cpus = std::max(cpus, std::min(gpu_cpus(i), taken_[i].offer.cpus));
      const auto least = static_cast<std::uint32_t>(taken_[i].offer.min_cores * threads(i));
      out_[i].cpus = std::max(cpus, least);
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::int64_t all_tasks() const {
    if (ask_.per_node_tasks) {
      return static_cast<std::int64_t>(*ask_.per_node_tasks) *
             static_cast<std::int64_t>(taken_.size());
    }
    if (ask_.tasks) return *ask_.tasks;
    return std::max<std::int64_t>(static_cast<std::int64_t>(ask_.total_cpus / ask_.cpus_per_task),
                                  1);
  }

  [[nodiscard]] bool has_per_task_devices() const {
    return std::ranges::any_of(ask_.devices, [](const DeviceAsk& d) { return d.per_task > 0; });
  }

  /// First visit: one task, or as many as an arbitrary list names.
  [[nodiscard]] std::int64_t arbitrary(std::size_t i) const {
    const auto at = ask_.arbitrary.find(cluster_.nodes[taken_[i].node].name);
    return at == ask_.arbitrary.end() ? 1 : at->second;
  }

  void give(std::size_t i, std::int64_t tasks) {
    out_[i].tasks += static_cast<std::uint32_t>(tasks);
    left_ -= tasks;
  }

  [[nodiscard]] std::int64_t threads(std::size_t i) const {
    return ask_.usable_threads(cluster_.nodes[taken_[i].node]);
  }

  /// How many more tasks a node may get: its share, --ntasks-per-node, and its devices.
  [[nodiscard]] std::int64_t room(std::size_t i, bool soft_limit) const {
    std::int64_t limit =
        ask_.overcommit ? std::int64_t{1} << 40 : taken_[i].cpus / ask_.cpus_per_task;
    if (ask_.per_node_tasks) limit = std::min<std::int64_t>(limit, *ask_.per_node_tasks);
    const bool per_task_devices = has_per_task_devices();
    for (std::size_t d = 0; d < ask_.devices.size(); ++d) {
      if (ask_.devices[d].per_task == 0) continue;
      limit = std::min<std::int64_t>(
          limit, static_cast<std::int64_t>(taken_[i].offer.devices[d] / ask_.devices[d].per_task));
    }
    if (soft_limit && !per_task_devices && !ask_.devices.empty()) {
      limit = std::min<std::int64_t>(limit, taken_[i].offer.max_tasks);
    }
    return limit - out_[i].tasks;
  }

  /// Threads left on cores that are in use already cost nothing more.
  void fill_touched_cores() {
    const std::int64_t c = ask_.cpus_per_task;
    for (std::size_t i = 0; i < taken_.size() && left_ > 0; ++i) {
      const std::int64_t used = std::int64_t{out_[i].tasks} * c;
      const std::int64_t spare = (threads(i) - used % threads(i)) % threads(i);
      const std::int64_t more = std::min({spare / c, room(i, true), left_});
      if (more > 0) give(i, more);
    }
  }

  void rounds(bool soft_limit) {
    for (bool gave = true; left_ > 0 && gave;) {
      gave = false;
      for (std::size_t i = 0; i < taken_.size() && left_ > 0; ++i) {
        std::int64_t visit = std::max<std::int64_t>(threads(i) / ask_.cpus_per_task, 1);
        if (ask_.plane_size) visit = *ask_.plane_size;
        const std::int64_t more = std::min({visit, room(i, soft_limit), left_});
        if (more <= 0) continue;
        give(i, more);
        gave = true;
      }
    }
  }

  [[nodiscard]] std::uint32_t gpu_cpus(std::size_t i) const {
    std::uint64_t gpus = 0;
    for (std::size_t d = 0; d < ask_.devices.size(); ++d) {
      if (ask_.devices[d].is_gpu()) gpus += taken_[i].devices[d];
    }
    return static_cast<std::uint32_t>(gpus * *ask_.cpus_per_gpu);
  }

  const cluster::Cluster& cluster_;
  const Ask& ask_;
  const std::vector<Taken>& taken_;
  std::vector<TasksHere> out_;
  std::int64_t left_ = 0;
};

}  // namespace

std::vector<TasksHere> share_tasks(const cluster::Cluster& cluster, const Ask& ask,
                                   const std::vector<Taken>& taken) {
  return TaskSharing(cluster, ask, taken).run();
}

}  // namespace berth::place
