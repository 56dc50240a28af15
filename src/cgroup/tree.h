// The groups around the steps of a node: what each may use, before its first task is born.
//
//   v2  <base>/job_<id>/step_<id>            made by whoever keeps the step's processes together
//   v2  <base>/job_<id>/step_<id>/user/task_<n>     only where tasks of a step differ
//   v1  <mount>/<name>/uid_<uid>/job_<id>/step_<id>[/task_<n>]
//
// These are the names that exporters and other tools look for. A job's group has the job's limits
// and its devices: its steps together stay below them, and a group that an exporter makes beside
// the steps (to see which GPUs the job has) can open what the job can.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cgroup/devices.h"
#include "cgroup/hierarchies.h"
#include "cgroup/kernel.h"

namespace berth::cgroup {

struct Limits {
  std::optional<std::uint64_t> memory;           // bytes of RAM
  std::optional<std::uint64_t> swap;             // bytes of swap on top of it
  std::optional<std::uint64_t> memory_and_swap;  // the sum, which is what v1 limits
  std::optional<std::uint64_t> processes;        // and threads
  std::string cpus;  // the kernel's numbers: "0-3,8"; "" = all of the parent's
};

struct StepAsk {
  std::uint32_t uid = 0;
  std::uint32_t job = 0;
  std::string step;    // "0", "batch"
  std::string cgroup;  // of v2, made; "" = there is none
  Limits of_job;
  Limits of_step;
  /// Of the job's own group; none where the group above the step is not one job's.
  std::vector<DeviceRule> job_devices{};
  std::vector<DeviceRule> devices;
  /// None, or the rules of each task, where they are not all the step's.
  std::vector<std::vector<DeviceRule>> tasks;
};

/// Where the tasks go, and what is to be removed with the step.
struct StepFence {
  struct Task {
    std::string cgroup;             // of v2, to be born into; "" = the step's
    std::vector<std::string> join;  // of v1
  };
  std::vector<std::string> join;    // directories of v1 that every task enters
  std::vector<Task> tasks;          // none, or one for each
  std::vector<std::string> remove;  // children first; not the step's group of v2
  std::string memory_events;        // the file whose line "oom_kill" counts; "" = no limit
  std::string process_events;       // likewise, "max": starts that the limit refused
};

/// A step's group of v1 that was found.
struct Found {
  std::uint32_t job = 0;
  std::string step;
  std::string path;
};

class Tree {
 public:
  struct Place {
    std::string v2_base;  // of the jobs' groups; made
    std::string v1_name;  // of the directory below each mount of v1
  };
  Tree() = default;
  /// Makes what all jobs share. Says in `missing` what cannot be had after all, and does without.
  Tree(Kernel& kernel, Hierarchies here, Means means, bool swap, Place place,
       std::vector<std::string>& missing);

  [[nodiscard]] const Means& means() const { return means_; }
  [[nodiscard]] bool fences() const {
    return means_.devices != Version::none || means_.memory != Version::none ||
           means_.cores != Version::none || means_.processes != Version::none;
  }
  /// Devices that may be forbidden: v1 has to be told one by one.
  void know_devices(std::vector<DeviceId> known) { known_ = std::move(known); }

  /// All or nothing.
  Result<StepFence> put_up(const StepAsk& ask);
  /// The groups of v1 of a job that has no step there any more. False while others are in one.
  bool tidy(std::uint32_t uid, std::uint32_t job);
  /// All steps' groups of v1, of earlier agents too.
  [[nodiscard]] std::vector<Found> found() const;
  /// Groups of v1 of jobs and users that hold no step.
  void sweep();
  /// What all jobs share, when it is empty.
  void leave();

 private:
  class Work;
  [[nodiscard]] std::vector<std::string> v1_bases() const;
  [[nodiscard]] std::string v1_base(const std::string& controller) const;
  bool open_v1(const std::string& controller, std::vector<std::string>& missing);
  bool open_v2(const std::string& controller, std::vector<std::string>& missing);

  Kernel* kernel_ = nullptr;
  Hierarchies here_;
  Means means_;
  bool swap_ = false;
  Place place_;
  std::vector<DeviceId> known_;
  std::map<std::uint32_t, std::vector<DeviceRule>> job_filters_;  // of v2, by job
};

/// Removes the group of a job in which there is no step. Others may have made groups in it: they go
/// as well unless somebody is in them. False when it is still there for that.
bool remove_job_group(Kernel& kernel, const std::string& path);

/// The number after a word at the begin of a line: "oom_kill 3".
std::uint64_t count_named(std::string_view text, std::string_view word);

}  // namespace berth::cgroup
