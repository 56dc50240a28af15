// Parsing and placing the sruns of a job.
#include "explain/steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "place/step_het.h"
#include "request/parse.h"

namespace berth::explain {
namespace {

using script::Launcher;

std::vector<std::string> arguments_of(const script::Command& command) {
  const auto first = static_cast<std::ptrdiff_t>(command.arguments_at);
  return {command.words.begin() + first, command.words.end()};
}

/// True when an option (not the program or its arguments) could not be expanded.
bool options_are_unsure(const script::Command& command, const std::vector<std::string>& words) {
  const std::size_t program =
      command.arguments_at + request::first_argument(request::Command::srun, words);
  return std::ranges::any_of(command.unsure_words, [&](std::size_t at) { return at < program; });
}

/// Options, variables and environment of an srun.
std::string key_of(const script::Command& command, const std::vector<std::string>& words) {
  const std::size_t program = request::first_argument(request::Command::srun, words);
  std::string key = fmt::format("{}", static_cast<const void*>(command.environment.get()));
  for (std::size_t i = 0; i < std::min(program, words.size()); ++i) key += '\0' + words[i];
  for (const auto& [name, value] : command.assignments) key += '\0' + name + '=' + value;
  return key;
}

}  // namespace

JobSteps::JobSteps(const cluster::Cluster& cluster, const std::vector<place::JobFacts>& facts,
                   bool outside)
    : cluster_(cluster), facts_(facts), outside_(outside) {
  for (const place::JobFacts& component : facts) states_.emplace_back(component);
}

void JobSteps::prepare(Run& run, const request::Surroundings& around) const {
  if (run.command->launcher != Launcher::srun) return;
  const std::vector<std::string> words = arguments_of(*run.command);
  if (options_are_unsure(*run.command, words)) {
    run.start = StepStart::unknown;
    return;
  }
  run.key = key_of(*run.command, words);
  request::Surroundings inside = around;
  inside.environment = run.inherited;
  inside.inside_job = true;
  auto parsed = request::parse(request::Command::srun, words, "", inside);
  if (!parsed) {
    run.error = parsed.error();
    run.start = StepStart::refused;
    return;
  }
  run.warnings = parsed->warnings;
  for (std::size_t part = 0; part < parsed->components.size(); ++part) {
    request::Request& request = parsed->components[part];
    // The parser has made a part of each group that --het-group names.
    const std::size_t group = !request.het_groups.empty() ? request.het_groups.front()
                              : facts_.size() > part      ? part
                                                          : 0;
    if (group >= facts_.size()) {
      run.error =
          fail(Code::bad_value,
               fmt::format("Requested het-group offset exceeds highest hetjob index ({} > {})",
                           group, facts_.size() - 1))
              .error();
      run.start = StepStart::refused;
      return;
    }
    run.requests.push_back(std::move(request));
    run.components.push_back(group);
  }
}

bool JobSteps::makes_step(const Run& run) const {
  if (run.command->launcher == Launcher::mpirun) {
    return outside_ || facts_.front().allocation.nodes.size() > 1;
  }
  return !run.requests.empty() && run.start != StepStart::refused;
}

place::StepPlan JobSteps::place(Run& run) {
  std::vector<place::StepPlan> parts;
  if (run.command->launcher == Launcher::mpirun) {
    parts.push_back(place::place_launcher_step(cluster_, facts_.front()));
    parts.back().id = next_id_;
  } else {
    parts = place_parts(run);
  }
  place::StepPlan plan = place::join_components(parts);
  const bool starts = plan.verdict == place::StepVerdict::starts;
  // A refused launch may use up its number as well: StepState knows.
  const std::size_t told = starts ? parts.size() : 1;
  for (std::size_t i = 0; i < told; ++i) {
    const std::size_t component = run.components.empty() ? 0 : run.components[i];
    states_[component].start(starts ? parts[i] : plan);
    next_id_ = std::max(next_id_, states_[component].next_id());
  }
  if (starts) run.parts = std::move(parts);
  return plan;
}

std::vector<place::StepPlan> JobSteps::place_parts(const Run& run) {
  for (place::StepState& state : states_) state.number_from(next_id_);
  if (facts_.size() == 1 && run.requests.size() > 1) {
    return place::place_step_components(cluster_, facts_.front(), run.requests, states_.front());
  }
  std::vector<place::StepPlan> parts;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const std::size_t component = run.components[i];
    parts.push_back(
        place::place_step(cluster_, facts_[component], run.requests[i], states_[component]));
  }
  return parts;
}

void JobSteps::finish(const Run& run) {
  if (!run.plan) return;
  for (place::StepState& state : states_) state.finish(run.plan->id);
}

}  // namespace berth::explain
