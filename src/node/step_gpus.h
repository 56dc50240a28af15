// What the tasks of steps make of GPUs: whose the processes are that one look a second finds there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bits.h"
#include "node/gpu_watch.h"
#include "node/steps.h"
#include "wire/basic.pb.h"

namespace berth::node {

/// What a process was started as.
struct ProcessMark {
  std::string step;       // BERTH_STEP
  std::string rank;       // SLURM_PROCID
  std::uint32_t uid = 0;  // of the process
};
/// By its environment, or that of the nearest of its ancestors that says it: containers clear it.
std::optional<ProcessMark> mark_of_process(std::uint32_t pid);

class StepGpus {
 public:
  using Look = std::function<std::optional<ProcessMark>(std::uint32_t pid)>;
  struct Step {
    NodeStep at;
    std::string mark;
    std::uint32_t uid = 0;
    bool has_gpus = false;  // others are not counted
    std::vector<std::uint32_t> ranks;
    std::map<std::uint32_t, std::uint32_t> gpus{};  // its GPUs: the library's number → the job's
  };
  /// Tasks that share a GPU while others of the step have nothing to do.
  struct Crowd {
    NodeStep at;
    Bits ranks;
    Bits crowded;  // GPUs, as the job counts them
    Bits idle;
  };
  explicit StepGpus(Look look) : look_(std::move(look)) {}

  [[nodiscard]] bool knows(const NodeStep& at) const { return steps_.contains(at); }
  void begin(Step step);
  /// How busy a GPU was is divided among the tasks that have processes on it.
  void add(const GpuRound& round);
  /// Those that have been so for some looks and were not told of before.
  std::vector<Crowd> take_crowds();
  /// Nothing is put for a step without GPUs, or one that no look has found yet.
  void put(const NodeStep& at, bool ended, wire::StepFigures& figures) const;
  void forget(const NodeStep& at);
  /// Forgets all others.
  void keep(const std::set<NodeStep>& running);

 private:
  struct Use {
    double busy_sum = 0;
    double busy_most = 0;
    std::uint64_t memory_now_mb = 0;
    std::uint64_t memory_most_mb = 0;
  };
  struct Metered {
    Step step;
    std::uint64_t rounds = 0;
    std::map<std::uint32_t, Use> tasks;      // by rank
    std::optional<std::uint64_t> energy_mj;  // of its GPUs; unset = none has told it
    int crowded_rounds = 0;                  // in a row
    Crowd crowd;                             // at the last of them
  };
  struct Task {
    Metered* step = nullptr;
    std::uint32_t rank = 0;
    friend auto operator<=>(const Task&, const Task&) = default;
  };
  std::optional<Task> whose(std::uint32_t pid);
  using TasksOn = std::map<std::uint32_t, std::set<Task>>;  // by the GPU's number
  static void look_for_crowd(const GpuRound& round, const TasksOn& on, Metered& step);

  Look look_;
  std::map<NodeStep, Metered> steps_;
  std::set<NodeStep> told_;                 // of their crowds
  std::map<std::string, Metered*> marked_;  // those with GPUs, by their mark
};

}  // namespace berth::node
