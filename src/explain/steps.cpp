// Parsing and placing the sruns of a job.
#include "explain/steps.h"

#include <fmt/format.h>

#include <algorithm>

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

/// Fewest nodes of the job that hold so many tasks.
std::uint32_t fewest_nodes(const place::JobFacts& facts, const request::Request& request) {
  const std::uint64_t wanted =
      std::uint64_t{request.ntasks.value_or(1)} * request.cpus_per_task.value_or(1);
  std::uint64_t cpus = 0;
  std::uint32_t nodes = 0;
  for (const cluster::NodeShare& share : facts.allocation.nodes) {
    if (cpus >= wanted && nodes > 0) break;
    cpus += share.usable_cpus;
    ++nodes;
  }
  return std::max(nodes, 1U);
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

place::StepPlan JobSteps::place(const Run& run) {
  place::StepPlan plan;
  if (run.command->launcher == Launcher::mpirun) {
    plan = place::place_launcher_step(cluster_, facts_.front());
    plan.id = next_id_;
    states_.front().start(plan);
  } else {
    plan = place_parts(run);
  }
  for (const place::StepState& state : states_) next_id_ = std::max(next_id_, state.next_id());
  return plan;
}

place::StepPlan JobSteps::place_parts(const Run& run) {
  std::vector<place::StepPlan> parts;
  const bool in_one_job = facts_.size() == 1 && run.requests.size() > 1;
  std::vector<std::string> used;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const std::size_t component = run.components[i];
    place::StepState& state = states_[component];
    state.number_from(next_id_);
    request::Request request = run.requests[i];
    if (in_one_job) {  // parts of one step never share a node
      const bool sized = request.given.on_command_line(request::Opt::nodes);
      if (!sized) {
        const std::uint32_t nodes = fewest_nodes(facts_[component], request);
        request.nodes = request::NodeCount{nodes, nodes, false, {}};
      }
      request.exclude.insert(request.exclude.end(), used.begin(), used.end());
    }
    place::StepPlan plan = place::place_step(cluster_, facts_[component], request, state);
    if (plan.verdict != place::StepVerdict::starts) {
      if (parts.empty()) state.start(plan);  // a refused launch may use up its number
      return plan;
    }
    for (const place::StepNode& node : plan.nodes) {
      used.push_back(cluster_.nodes[node.share.node].name);
    }
    parts.push_back(std::move(plan));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) states_[run.components[i]].start(parts[i]);
  return merged(std::move(parts));
}

void JobSteps::finish(const Run& run) {
  if (!run.plan) return;
  for (place::StepState& state : states_) state.finish(run.plan->id);
}

std::string JobSteps::key(const Run& run) {
  const std::vector<std::string> words = arguments_of(*run.command);
  const std::size_t program = request::first_argument(request::Command::srun, words);
  std::string key =
      std::to_string(reinterpret_cast<std::uintptr_t>(run.command->environment.get()));
  for (std::size_t i = 0; i < std::min(program, words.size()); ++i) key += '\0' + words[i];
  for (const auto& [name, value] : run.command->assignments) key += '\0' + name + '=' + value;
  return key;
}

place::StepPlan merged(std::vector<place::StepPlan> parts) {
  place::StepPlan all = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto nodes = static_cast<std::uint32_t>(all.nodes.size());
    const std::uint32_t tasks = all.ntasks;
    for (place::StepNode& node : parts[i].nodes) {
      for (std::uint32_t& rank : node.ranks) rank += tasks;
      all.nodes.push_back(std::move(node));
    }
    for (place::TaskPlan& task : parts[i].tasks) {
      task.rank += tasks;
      task.node_id += nodes;
      all.tasks.push_back(std::move(task));
    }
    all.ntasks += parts[i].ntasks;
    for (Message& warning : parts[i].warnings) all.warnings.push_back(std::move(warning));
  }
  return all;
}

}  // namespace berth::explain
