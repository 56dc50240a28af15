// What bind.h promises.
#include "explain/bind.h"

#include <fmt/format.h>

#include <algorithm>

#include "lint/launch.h"
#include "place/rank_variables.h"

namespace berth::explain {

Bind::Bind(std::span<const std::string> words) : words_(lint::read_berth_bind(words)) {}

Result<Bind::Node> Bind::read_node(const std::string& share, const place::LocalRank& any) {
  auto local = place::read_local_share(share);
  if (!local) return pass(local.error());
  auto choices = place::choose_for_ranks(*local, any);
  if (!choices) return pass(choices.error());
  return Node{*std::move(local), *std::move(choices)};
}

Result<void> Bind::give(Task& task, const Environment& environment, place::LocalRank rank) {
  if (!*words_) return pass(words_->error());
  const auto told = environment.find(place::kLocalShareVariable);
  if (told == environment.end() || rank.rank >= rank.ranks) return {};  // no process of the job
  rank.gpus_per_rank = (*words_)->gpus_per_rank;
  rank.cpus_per_rank = place::cpus_of_rank(environment);
  const auto [node, added] = nodes_.try_emplace({told->second, rank.ranks}, Node{});
  if (added) node->second = read_node(told->second, rank);
  if (!node->second) return pass(node->second.error());
  const place::LocalShare& local = node->second->share;
  const place::LocalChoice& choice = node->second->choices[rank.rank];
  task.gpus = choice.gpus;
  task.bound = choice.bound;
  if (choice.bound) task.cpus = choice.cpus;
  for (const auto& [name, value] : local.rank_variables(choice.gpus, environment)) {
    if (name == place::kCudaList) task.cuda_visible_devices = value;
    if (!task.env.empty()) task.env[name] = value;
  }
  if (choice.bound && !task.env.empty()) task.env[place::kTaskCpus] = choice.cpus.hex();
  return {};
}

void Bind::apply(Step& step, Task& task, const Environment& environment, place::LocalRank rank) {
  if (!words_) return;
  const auto given = give(task, environment, rank);
  if (given) return;
  const std::string note =
      fmt::format("berth bind fails on {}: {}", task.node, given.error().what());
  if (std::ranges::find(step.notes, note) == step.notes.end()) step.notes.push_back(note);
}

}  // namespace berth::explain
