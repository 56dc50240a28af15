// Processes of the explanation from planned steps, ranks of mpirun and workers of torchrun.
// Internal to the module.
#pragma once

#include <string>
#include <vector>

#include "explain/explain.h"
#include "explain/steps.h"
#include "place/environment.h"
#include "place/step.h"

namespace berth::explain {

/// Lists tasks until kMaxTasks are listed over all steps.
class TaskLister {
 public:
  TaskLister(const cluster::Cluster& cluster, bool with_environments)
      : cluster_(cluster), with_environments_(with_environments) {}

  /// The tasks of a planned step, part by part. `inherited` is srun's own environment.
  void list_step(Step& step, const place::JobFacts& job, const std::vector<place::StepPlan>& parts,
                 const Environment& inherited, const std::vector<std::string>& argv);
  /// The ranks that mpirun starts; `words` from mpirun on.
  void list_mpirun(Step& step, const place::JobFacts& job, const std::vector<std::string>& words,
                   const std::optional<place::StepPlan>& daemons);
  /// `count` processes beside each other on the node of `like`; `words` of what starts them.
  void list_local(Step& step, const Task& like, std::uint32_t count,
                  const std::vector<std::string>& words);
  [[nodiscard]] Task batch_task(const place::JobFacts& job, const Environment& env) const;

 private:
  bool room(Step& step);

  [[nodiscard]] Task task_of(const place::TaskPlan& planned, Environment environment) const;

  const cluster::Cluster& cluster_;
  bool with_environments_;
  std::size_t listed_ = 0;
};

/// Words with quotes where a shell would need them; `all`: around every word, so that a shell
/// would expand nothing.
std::string shell_quoted(const std::vector<std::string>& words, bool all = false);
std::optional<std::string> find(const Environment& env, const std::string& name);

}  // namespace berth::explain
