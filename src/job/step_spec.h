// From the plan of a step to what each node is told: shares, tasks, masks and the variables that
// differ from those the program brings along.
#pragma once

#include <string>
#include <vector>

#include "job/types.h"
#include "place/environment.h"

namespace berth::job {

struct SpecPart {
  const Job* job = nullptr;  // the component it runs in
  const place::StepPlan* plan = nullptr;
};

struct SpecInput {
  const cluster::Cluster* cluster = nullptr;
  const Policy* policy = nullptr;
  std::vector<SpecPart> parts;  // one for an ordinary step
  bool own_job = false;         // srun made the job: nothing is inherited
  const wire::Asked* ask = nullptr;
  std::string name;
  std::optional<std::uint32_t> time_limit_minutes;
  Time now = 0;
  Time adopted = 0;  // State::adopted()
};

/// One for each node of the step, by node id. User, epoch, expiry and nonce are left to the
/// controller.
std::vector<wire::StepSpec> step_specs(const SpecInput& input);

/// What State remembers of part `part` of the step; node ids of parts follow each other.
void open_step(Step& step, const SpecInput& input, const place::StepPlan& plan, std::size_t part,
               const std::vector<wire::StepSpec>& specs);

/// What a step holds, as AllocTRES shows it: nothing for daemons of mpirun.
std::string tres_of_step(const cluster::Cluster& cluster, const place::StepPlan& plan);

/// Variables about the job that placement does not know: times, owner, where it was submitted.
void put_job_facts(request::Environment& env, const Policy& policy, const Job& job);

/// Tells what all tasks of a node have that is not inherited, what each of them has on top (`own`),
/// and what of the inherited none may have.
void put_differences(wire::StepSpec& spec, request::Environment common,
                     const std::vector<request::Environment>& own,
                     const request::Environment& inherited);

}  // namespace berth::job
