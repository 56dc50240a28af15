// What environment.h promises.
#include "step/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "launch/rendezvous.h"
#include "text/cpumask.h"

namespace berth::step {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view trimmed_left(std::string_view s) {
  const std::size_t at = s.find_first_not_of(kBlanks);
  return at == std::string_view::npos ? std::string_view() : s.substr(at);
}

/// The rest of the line when it begins with this word and a blank.
std::optional<std::string_view> after_word(std::string_view line, std::string_view word) {
  if (!line.starts_with(word)) return std::nullopt;
  line.remove_prefix(word.size());
  if (line.empty() || kBlanks.find(line.front()) == std::string_view::npos) return std::nullopt;
  return trimmed_left(line);
}

/// srun -E: numbers of nodes and tasks are the caller's own.
void keep_counts(const wire::Program& program, TaskEnvironment& env) {
  constexpr std::array<std::string_view, 4> kCounts = {"SLURM_NNODES", "SLURM_JOB_NUM_NODES",
                                                       "SLURM_NTASKS", "SLURM_NPROCS"};
  for (const wire::Variable& v : program.environment()) {
    if (std::ranges::find(kCounts, v.name()) != kCounts.end()) {
      env.set(v.name(), v.value());
    }
  }
}

/// What an outer step said of its own ranks does not count here.
void forget_outer_rendezvous(Environment& env) {
  const auto outer = env.find("BERTH_RENDEZVOUS");
  if (outer == env.end()) return;
  const std::string said = outer->second;
  env.erase(outer);
  for (std::string_view rest = said; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view one = rest.substr(0, end);
    const std::size_t equals = std::min(one.find('='), one.size());
    // One that was changed since is the user's.
    const auto at = env.find(one.substr(0, equals));
    if (at != env.end() && at->second == one.substr(std::min(equals + 1, one.size())))
      env.erase(at);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

/// Only what the user has not said.
void put_rendezvous(const wire::StepSpec& spec, const wire::TaskSpec& task,
                    const wire::Program& program, TaskEnvironment& env) {
  auto variables = launch::rendezvous(spec, task);
  if (variables.empty()) return;  // no ranks: a script, a daemon
  if (program.launcher() == "none") variables.clear();
  if (const auto each_node = env.find("SLURM_STEP_TASKS_PER_NODE")) {
    std::string each = launch::tasks_per_node(std::string(*each_node));
    if (!each.empty()) variables.emplace_back("SLURM_NTASKS_PER_NODE", std::move(each));
  }
  // torchrun --standalone is told to be alone, whatever its neighbours do.
  const bool alone = std::ranges::find(program.argv(), "--standalone") != program.argv().end();
  std::string names;
  for (const auto& [name, value] : variables) {
    if (alone && name.starts_with("PET_")) continue;
    if (!env.set_if_unset(name, value)) continue;
    if (!names.empty()) names += ',';
    names.append(name).append(1, '=').append(value);
  }
  if (!names.empty()) env.set_if_unset("BERTH_RENDEZVOUS", std::move(names));
}

}  // namespace

StepEnvironment::StepEnvironment(const wire::StepSpec& spec, const wire::Program& program,
                                 const std::string& mark,
                                 const std::function<void(Environment&)>& more)
    : spec_(spec), program_(program) {
  Environment common;
  for (const wire::Variable& v : program.environment()) {
    common.insert_or_assign(v.name(), v.value());
  }
  for (const std::string& name : spec.unset()) common.erase(name);
  for (const wire::Variable& v : spec.common()) common.insert_or_assign(v.name(), v.value());
  forget_outer_rendezvous(common);
  if (std::string ports = launch::port_text(spec); !ports.empty()) {
    common.insert_or_assign("SLURM_STEP_RESV_PORTS", std::move(ports));
  }
  common.insert_or_assign("BERTH_STEP", mark);
  for (const wire::TaskSpec& task : spec.tasks()) {
    ranks_ += fmt::format("{}{}", ranks_.empty() ? "" : ",", task.rank());
  }
  if (more) more(common);
  common_ = CommonVariables(common);
}

TaskEnvironment StepEnvironment::of(const wire::TaskSpec& task) const {
  TaskEnvironment env(common_);
  for (const wire::Variable& v : task.variables()) env.set(v.name(), v.value());
  if (program_.preserve_env()) keep_counts(program_, env);

  env.set_if_unset("SLURMD_NODENAME", spec_.node());
  env.set_if_unset("SLURM_NODEID", std::to_string(spec_.node_id()));
  env.set_if_unset("SLURM_PROCID", std::to_string(task.rank()));
  env.set_if_unset("SLURM_LOCALID", std::to_string(task.local_id()));
  env.set_if_unset("SLURM_GTIDS", ranks_);
  if (const auto cpus = text::parse_id_set(task.cpus()); cpus && cpus->any()) {
    env.set_if_unset("BERTH_TASK_CPUS", cpus->hex());
  }
  put_rendezvous(spec_, task, program_, env);
  // Jobs count GPUs along the bus, CUDA from the fastest on unless it is told.
  if (env.find("CUDA_VISIBLE_DEVICES")) env.set_if_unset("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  return env;
}

std::string apply_task_prolog(std::string_view output, Environment& environment) {
  std::string printed;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    const std::string_view line = trimmed_left(output.substr(0, end));
    output.remove_prefix(std::min(end + 1, output.size()));
    if (const auto text = after_word(line, "print")) {
      printed.append(*text).push_back('\n');
    } else if (const auto assignment = after_word(line, "export")) {
      const std::size_t equals = assignment->find('=');
      if (equals == std::string_view::npos || equals == 0) continue;
      environment.insert_or_assign(std::string(assignment->substr(0, equals)),
                                   std::string(assignment->substr(equals + 1)));
    } else if (const auto name = after_word(line, "unset")) {
      const std::string key(name->substr(0, name->find_last_not_of(" \t\r") + 1));
      environment.erase(key);
    }
  }
  return printed;
}

}  // namespace berth::step
