// What steps use: the controller's questions, and the shares of steps in the use of GPUs.
#include <fmt/format.h>

#include <set>

#include "node/agent.h"
#include "node/gpu_shares.h"

namespace berth::node {

void Agent::measure(const wire::MeasureOnNodes& message) {
  for (const std::string& node : message.nodes()) {
    steps_.measure({node, {message.job_id(), message.attempt(), message.step_id()}},
                   {.number = message.number(), .with_pids = message.with_pids()});
  }
}

void Agent::measured(const NodeStep& at, const Steps::Question& question,
                     const Steps::Answer& known) {
  wire::MeasuredOnNode answer;
  answer.set_number(question.number);
  answer.set_node(at.node);
  answer.set_unable(known.unable);
  if (known.tasks != nullptr) {
    *answer.mutable_figures() = known.tasks->figures();
    step_gpus_.put(at, false, *answer.mutable_figures());
    if (question.with_pids) *answer.mutable_pids() = known.tasks->pids();
  } else if (known.ended != nullptr) {
    *answer.mutable_figures() = known.ended->usage().figures();
  }
  uplink_.send(answer);
}

void Agent::meter_steps(const GpuRound& round) {
  std::set<NodeStep> running;
  steps_.each_running([&](const NodeStep& at, const std::string& bytes, const std::string& mark) {
    running.insert(at);
    if (step_gpus_.knows(at)) return;
    StepGpus::Step step{.at = at, .mark = mark, .uid = 0, .has_gpus = false, .ranks = {}};
    if (const auto spec = wire::decode<wire::StepSpec>(bytes)) {
      step.uid = spec->uid();
      step.has_gpus = gpus_in(spec->share()).any();
      step.gpus = meter_.numbers_of(gpus_in(spec->share()));
      for (const wire::TaskSpec& task : spec->tasks()) step.ranks.push_back(task.rank());
    }
    step_gpus_.begin(std::move(step));
  });
  step_gpus_.keep(running);
  step_gpus_.add(round);
  for (const StepGpus::Crowd& crowd : step_gpus_.take_crowds()) {
    const auto named = [](const Bits& which, std::string_view what) {
      return fmt::format("{}{} {}", what, which.count() == 1 ? "" : "s", which.ranges());
    };
    steps_.say(crowd.at,
               fmt::format("berth: {} on {} use {}, {} {} idle: --gpus-per-task=1 or "
                           "--gpu-bind=single:1 gives each task its own",
                           named(crowd.ranks, "task"), crowd.at.node, named(crowd.crowded, "GPU"),
                           named(crowd.idle, "GPU"), crowd.idle.count() == 1 ? "is" : "are"),
               true);
  }
}

}  // namespace berth::node
