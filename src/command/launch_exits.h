// How the tasks of a step ended: the lines srun prints about them and the code it exits with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wire/step_ids.h"

namespace berth::command {

/// The signal number that says a task was killed for want of memory ("0:125").
inline constexpr int kOutOfMemorySignal = wire::kOutOfMemoryStatus;

/// "Exited with exit code 2", "Killed", "Segmentation fault (core dumped)"; "" for a good end.
std::string end_of_task(int status);

/// The same as a shell says it: 128 + the signal, else the exit code.
int exit_code_of(int status);

/// "task 3" or "tasks 0-2,5".
std::string tasks_text(const std::set<std::uint32_t>& ranks);

class TaskExits {
 public:
  /// A task on `node` ended with a wait(2) status.
  void add(const std::string& node, std::uint32_t rank, int status);

  /// Lines about ends that were not told yet, without "srun: error: ": "n0: tasks 0-3: Killed".
  /// `reduce`: nothing is said twice (SLURM_SRUN_REDUCE_TASK_EXIT_MSG).
  std::vector<std::string> lines(bool reduce);

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool any_failed() const { return failed_; }
  /// A task was ended by SIGKILL or SIGTERM.
  [[nodiscard]] bool any_terminated() const { return terminated_; }
  [[nodiscard]] bool has(std::uint32_t rank) const { return ended_.contains(rank); }

  /// 128 + the highest signal, else the highest exit code.
  [[nodiscard]] int exit_code() const;
  /// The same as one wait(2) status, for the controller.
  [[nodiscard]] int wait_status() const;

 private:
  std::map<std::pair<std::string, int>, std::set<std::uint32_t>> untold_;
  std::set<std::string> told_;
  std::set<std::uint32_t> ended_;
  std::size_t count_ = 0;
  bool failed_ = false;
  bool terminated_ = false;
  bool out_of_memory_ = false;
  int highest_code_ = 0;
  int highest_signal_ = 0;
};

}  // namespace berth::command
