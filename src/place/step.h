// Steps inside a job: what a step gets from its job, how its tasks are laid out and numbered, which
// CPUs and GPUs each task may use. Rules: spec placement-steps.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/usage.h"
#include "place/place.h"
#include "request/counts.h"
#include "request/request.h"

namespace berth::place {

/// A job as its steps see it.
struct JobFacts {
  std::uint32_t id = 1;
  std::string name;
  request::Request request;
  request::Counts counts;
  cluster::Allocation allocation;
  std::string partition;
  std::optional<std::uint32_t> time_limit_minutes;
  std::optional<request::Memory> memory;
  std::string reservation;  // it runs in this one; "" = none
};

/// What one task of a step gets.
struct TaskPlan {
  std::uint32_t rank = 0;
  std::uint32_t local_id = 0;
  std::uint32_t node_id = 0;  // position of the node in the step
  cluster::NodeIndex node = 0;
  bool bound = false;             // false: no mask is set at all (--cpu-bind=none, whole node)
  Bits cpus;                      // the task's CPU mask (hardware threads)
  Bits gpus;                      // device indices on the node
  std::vector<Message> messages;  // "error: Not enough gres to bind 2 per task", …
};

struct StepNode {
  cluster::NodeShare share;                  // cores, memory, devices the step holds there
  std::vector<std::uint32_t> ranks;          // ascending
  std::optional<std::string> cpu_bind_type;  // "mask_cpu:", "none", …
  std::string cpu_bind_list;                 // "0x0001,0x0100"
  bool cpu_bind_verbose = false;
};

enum class StepVerdict { starts, waits, refused };

struct StepPlan {
  StepVerdict verdict = StepVerdict::refused;
  std::uint32_t id = 0;
  std::vector<StepNode> nodes;  // in node order
  std::vector<TaskPlan> tasks;  // by rank
  std::uint32_t ntasks = 0;
  std::optional<std::uint32_t> cpus_per_task;
  std::optional<std::uint32_t> ntasks_per_node;  // on srun's own command line
  std::optional<request::GpuBind> gpu_bind;
  std::string tres_per_task;        // SLURM_TRES_PER_TASK of the tasks; "" = not set
  bool allow_task_sharing = false;  // tasks may reach the other tasks' GPUs
  std::string distribution;         // value of SLURM_DISTRIBUTION; "" = not set
  std::optional<std::uint32_t> plane_size;
  bool counted = true;    // takes resources from other steps
  bool launcher = false;  // daemons of mpirun: neither takes nor occupies
  bool exact = false;
  std::vector<Message> warnings;
  Error error;            // when refused
  std::string waits_for;  // what is in use and by which step, in words
  std::vector<std::uint32_t> waits_for_steps;
};

/// The steps of one job that run now, and the pointer that rotates small steps over the nodes.
class StepState {
 public:
  explicit StepState(const JobFacts& /*job*/) {}
  void start(const StepPlan& plan);    // remembers what a counted step holds
  void finish(std::uint32_t step_id);  // gives it back
  [[nodiscard]] const std::vector<StepPlan>& running() const { return running_; }
  [[nodiscard]] std::uint32_t next_id() const { return next_id_; }
  /// The components of a heterogeneous job number their steps together.
  void number_from(std::uint32_t id) { next_id_ = id; }

  std::size_t rotation = 0;  // index into the job's nodes

 private:
  std::vector<StepPlan> running_;
  std::uint32_t next_id_ = 0;
};

/// Plans `srun` inside a job. `srun` was parsed with the job's environment (batch_environment), so
/// inherited values carry Level::environment. On success the caller calls state.start(plan).
/// Changes only state.rotation (a request that fails leaves it).
StepPlan place_step(const cluster::Cluster& cluster, const JobFacts& job,
                    const request::Request& srun, StepState& state);

/// Plans the single step of an `srun` that made its own job.
StepPlan place_own_step(const cluster::Cluster& cluster, const JobFacts& job,
                        const request::Request& srun);

/// A daemon step of mpirun (srun --external-launcher): one task a node, all the job has, no charge.
StepPlan place_launcher_step(const cluster::Cluster& cluster, const JobFacts& job);

/// Task counts of a node list laid out for the whole job (SLURM_TASKS_PER_NODE in batch scripts).
std::vector<std::uint32_t> job_tasks_per_node(const cluster::Cluster& cluster, const JobFacts& job);

}  // namespace berth::place
