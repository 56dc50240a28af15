// The variables Slurm sets: in the batch script, in salloc's command and in each task of a step.
// Only what follows from the plan; times, pids, ports and user names are added by who runs it.
#pragma once

#include "place/step.h"

namespace berth::place {

using request::Environment;

/// Variables of the batch script (node-local ones are those of the first node).
Environment batch_environment(const cluster::Cluster& cluster, const JobFacts& job);
/// Variables of the batch script of a heterogeneous job: those of the first component, and all
/// components' own with the suffix _HET_GROUP_n.
Environment het_batch_environment(const cluster::Cluster& cluster,
                                  const std::vector<JobFacts>& components);
/// Adds the variables of a job to those that its script has from the user. They replace his, but
/// for what tells mpirun and mpiexec how to start their daemons: that stays as he wishes.
void add_job_variables(Environment& env, const Environment& job);
/// Variables of the command salloc runs: no node-local ones.
Environment salloc_environment(const cluster::Cluster& cluster, const JobFacts& job);
/// Variables of one task. `inherited` is srun's own environment (batch_environment inside a batch
/// script, {} for an srun that made its own job).
Environment task_environment(const cluster::Cluster& cluster, const JobFacts& job,
                             const StepPlan& step, const TaskPlan& task,
                             const Environment& inherited);
/// The same for many tasks of one step: what they have in common is made once. `cluster` and `step`
/// must outlive it.
class StepEnvironment {
 public:
  StepEnvironment(const cluster::Cluster& cluster, const JobFacts& job, const StepPlan& step,
                  const Environment& inherited);
  [[nodiscard]] Environment of(const TaskPlan& task) const;
  /// The same in two parts: what all tasks on a node of the step have, and what a task has on top
  /// of that.
  [[nodiscard]] Environment of_node(std::uint32_t node_id) const;
  [[nodiscard]] Environment own(const TaskPlan& task) const;

 private:
  [[nodiscard]] std::string local_share(const JobFacts& job, const StepNode& at) const;

  const cluster::Cluster& cluster_;
  const StepPlan& step_;
  Environment common_;
  std::vector<std::string> local_shares_;  // by node of the step
};
/// What a rank started by mpirun sees on one node of the job: what the launcher's daemon there got
/// (the first node has one too).
Environment mpirun_rank_environment(const cluster::Cluster& cluster, const JobFacts& job,
                                    std::size_t node_position);

/// SLURM_TRES_PER_TASK: "cpu=2,gres/gpu=1"; "" when nothing was asked for by task.
std::string tres_per_task_text(const request::Request& request);

/// "NO", "NODE", "USER", …: SLURM_JOB_EXCLUSIVE, and Exclusive= of scontrol show job.
std::string_view exclusive_word(request::Exclusive exclusive);

/// "2(x3),1": consecutive equal values joined.
std::string repetition_list(const std::vector<std::uint32_t>& values);

}  // namespace berth::place
