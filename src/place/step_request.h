// What srun decides before it asks for a step: how many nodes and tasks, which devices, how they
// are bound. From the parsed options and the job to plain numbers, with srun's own warnings and
// refusals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "place/cpu_bind.h"
#include "place/layout.h"
#include "place/step.h"

namespace berth::place {

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// a × b, or the largest number when that is more: hostile counts must not wrap round to small
/// ones.
constexpr std::uint64_t product_or_max(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/// How the amount of one generic resource on a node is found.
enum class GresBasis {
  per_node,
  per_task,
  per_task_group,  // one for each --ntasks-per-gpu tasks
  per_step,        // --gpus, split over the nodes
  all_of_job,      // whatever the job has there
};

struct StepGres {
  std::string name;
  GresBasis basis = GresBasis::all_of_job;
  std::vector<request::GresAsk> asks;  // by type; empty for per_task_group and all_of_job
  std::uint32_t tasks_per_unit = 1;    // per_task_group

  /// Sum over the types.
  [[nodiscard]] std::uint64_t count() const;
};

struct StepAsk {
  std::uint32_t min_nodes = 1;
  std::uint32_t max_nodes = 1;
  std::optional<std::uint32_t> tasks;  // unset: as many as fit (settle_tasks)
  bool bind_gpus_to_ranks = false;     // once it is known how many there are on each node
  std::optional<std::uint32_t> ntasks_per_node;
  bool ntasks_per_node_own = false;  // on srun's command line, not the job's
  std::optional<std::uint32_t> cpus_per_task;
  std::optional<std::uint64_t> cpus;  // wanted in all; unset until tasks are known
  std::uint64_t job_cpus = 0;         // what the job has in all
  bool all_job_cpus = false;          // own job and no task count: the step takes all of it
  bool exact = false;
  bool overlap = false;
  bool overcommit = false;
  bool immediate = false;
  bool enforce_binding = false;
  bool allow_task_sharing = false;
  std::optional<request::Memory> memory;  // never 0: all of the job's memory is not counted
  std::uint64_t least_gpu_memory_mb = 0;  // --gpu-mem-min
  bool all_memory = false;                // --mem=0 or --mem-per-cpu=0 was asked for
  std::optional<std::uint32_t> cpus_per_gpu;
  std::optional<std::uint32_t> ntasks_per_gpu;
  std::vector<StepGres> gres;
  std::vector<request::GresAsk> step_gpus;  // --gpus, whatever basis counts
  std::optional<request::GpuBind> gpu_bind;
  std::string tres_per_task;  // SLURM_TRES_PER_TASK of the tasks

  LayoutAsk layout;
  bool fewest_nodes = false;  // pack without -N: as few nodes as hold the tasks
  bool nodes_given = false;   // -N on the command line
  bool distribution_given = false;
  std::string distribution;  // SLURM_DISTRIBUTION, "" = not set
  CpuBindAsk cpu_bind;

  std::vector<std::size_t> listed;      // positions in the job that must be used
  std::vector<std::size_t> barred;      // taken by earlier components of the same step
  std::optional<std::size_t> relative;  // -r

  /// CPUs of a task for counting (c, 1 when not given).
  [[nodiscard]] std::uint32_t task_cpus() const { return std::max(cpus_per_task.value_or(1), 1U); }
};

/// An srun inside its job. srun's own warnings go to `warnings`, also when it is refused.
Result<StepAsk> ask_in_job(const cluster::Cluster& cluster, const JobFacts& job,
                           const request::Request& srun, std::vector<Message>& warnings);

/// The step of an srun that made its own job.
Result<StepAsk> ask_for_own_job(const cluster::Cluster& cluster, const JobFacts& job,
                                const request::Request& srun);

/// Fixes the task count of an ask that left it open, and what follows from the count.
void settle_tasks(StepAsk& ask, std::uint32_t tasks);

/// "Unable to create step for job J: <text>".
Error step_error(const JobFacts& job, Code code, std::string hint = {});

}  // namespace berth::place
