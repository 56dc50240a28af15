// What the tasks use now. Nothing is looked at unless somebody asks.
#include <unistd.h>

#include <algorithm>
#include <set>

#include "step/supervisor.h"

namespace berth::step {

wire::TasksMeasured Supervisor::measure() const {
  std::vector<pid_t> leaders;
  for (const Task& task : tasks_) leaders.push_back(task.exited ? 0 : task.pid);
  std::vector<std::vector<pid_t>> processes = families(leaders);
  adopt_orphans(processes);
  const KernelUnits units = KernelUnits::of_this_machine();
  CpuClocks clocks;
  wire::TasksMeasured out;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].pid <= 0) continue;
    TaskUse use = use_of_all(processes[i], units, clocks);
    if (tasks_[i].exited) {
      // What it left behind is still there; what it had is not.
      const TaskUse& used = tasks_[i].used;
      use.cpu += used.cpu;
      use.pages += used.pages;
      use.memory_most = std::max(use.memory_most, used.memory_most);
      use.bytes_known = use.bytes_known || used.bytes_known;
      use.bytes.read += used.bytes.read;
      use.bytes.written += used.bytes.written;
    }
    note_task(*out.mutable_figures(), tasks_[i].spec->rank(), use, true);
    for (const pid_t pid : processes[i]) out.add_pids(static_cast<std::uint32_t>(pid));
  }
  return out;
}

/// Processes whose parents have gone are the task's that their environment names.
void Supervisor::adopt_orphans(std::vector<std::vector<pid_t>>& processes) const {
  const pid_t self = ::getpid();
  std::set<pid_t> known{self};
  for (const std::vector<pid_t>& family : processes) known.insert(family.begin(), family.end());
  const std::vector<pid_t> all =
      container_.grouped() ? container_.pids() : families({&self, 1}).front();
  for (const pid_t pid : all) {
    if (known.contains(pid)) continue;
    // Others that live beside it and helpers of ours are not the step's.
    if (started_with(pid, "BERTH_STEP") != order_.mark()) continue;
    const std::string rank = started_with(pid, "SLURM_PROCID");
    const auto at = std::ranges::find_if(
        tasks_, [&](const Task& task) { return std::to_string(task.spec->rank()) == rank; });
    if (at != tasks_.end()) processes[static_cast<std::size_t>(at - tasks_.begin())].push_back(pid);
  }
}

}  // namespace berth::step
