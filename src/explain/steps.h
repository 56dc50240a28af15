// The steps of a job in the making: parsing each srun with the environment it would have, placing
// it beside what runs, numbering. Handles heterogeneous jobs and steps. Internal to the module.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "explain/explain.h"
#include "place/step.h"
#include "script/script.h"

namespace berth::explain {

/// What became of one launcher command.
struct Run {
  const script::Command* command = nullptr;
  std::vector<request::Request> requests;  // of an srun, one for each part; empty: not planned
  std::vector<std::size_t> components;     // of the job, that the parts run in
  std::string key;                         // equal for runs that ask for the same
  std::optional<place::StepPlan> plan;     // of all parts together; unset when it makes no step
  std::vector<place::StepPlan> parts;      // of a step that starts
  std::optional<Error> error;              // parsing failed
  std::vector<Message> warnings;           // of parsing
  Environment inherited;                   // the launcher's own environment
  StepStart start = StepStart::at_once;
  std::vector<std::uint32_t> waits_for;
  std::string waits_why;
  std::vector<std::uint32_t> beside;
};

class JobSteps {
 public:
  /// Both must outlive the object. `outside`: the launchers run on no node of the job (salloc).
  JobSteps(const cluster::Cluster& cluster, const std::vector<place::JobFacts>& facts,
           bool outside);

  /// Parses an srun. Afterwards run.error is set, or run.start is `unknown`, or requests are there.
  void prepare(Run& run, const request::Surroundings& around) const;
  /// Whether something is to be placed: a parsed srun, or an mpirun that needs another node than
  /// the one it runs on.
  [[nodiscard]] bool makes_step(const Run& run) const;
  /// Places it beside what runs; what starts, holds its resources from now on.
  place::StepPlan place(Run& run);
  void finish(const Run& run);

 private:
  [[nodiscard]] std::vector<place::StepPlan> place_parts(const Run& run);

  const cluster::Cluster& cluster_;
  const std::vector<place::JobFacts>& facts_;
  bool outside_;
  std::vector<place::StepState> states_;
  std::uint32_t next_id_ = 0;
};

}  // namespace berth::explain
