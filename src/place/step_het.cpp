#include "place/step_het.h"

#include <fmt/format.h>

#include <algorithm>

#include "place/step_place.h"

namespace berth::place {
namespace {

void append_component(StepPlan& whole, const StepPlan& part) {
  const std::uint32_t first_rank = whole.ntasks;
  const auto first_node = static_cast<std::uint32_t>(whole.nodes.size());
  for (StepNode node : part.nodes) {
    for (std::uint32_t& rank : node.ranks) rank += first_rank;
    whole.nodes.push_back(std::move(node));
  }
  for (TaskPlan task : part.tasks) {
    task.rank += first_rank;
    task.node_id += first_node;
    whole.tasks.push_back(std::move(task));
  }
  whole.ntasks += part.ntasks;
  whole.warnings.insert(whole.warnings.end(), part.warnings.begin(), part.warnings.end());
}

/// Components of one step keep to as few nodes as hold their tasks, away from each other's.
Result<StepAsk> component_ask(const cluster::Cluster& cluster, const JobFacts& job,
                              const request::Request& srun, const std::vector<std::size_t>& used,
                              std::vector<Message>& warnings) {
  std::vector<Message> ignored;  // about node counts that components do not inherit
  auto ask = ask_in_job(cluster, job, srun, srun.nodes ? ignored : warnings);
  if (!ask) return ask;
  ask->barred = used;
  if (!ask->nodes_given) {
    ask->fewest_nodes = true;
    ask->min_nodes = 1;
  }
  const std::size_t left = job.allocation.nodes.size() - used.size();
  if (ask->min_nodes > left || left == 0) {
    return fail(Code::invalid_node_count,
                fmt::format("Allocation failure of {} nodes: job size of {}, already allocated {} "
                            "nodes to previous components.",
                            ask->min_nodes, job.allocation.nodes.size(), used.size()));
  }
  ask->max_nodes = std::min(ask->max_nodes, static_cast<std::uint32_t>(left));
  return ask;
}

}  // namespace

StepPlan join_components(std::span<const StepPlan> parts, std::size_t viewpoint) {
  StepPlan whole;
  if (parts.empty()) return whole;
  whole = parts[std::min(viewpoint, parts.size() - 1)];
  whole.nodes.clear();
  whole.tasks.clear();
  whole.warnings.clear();
  whole.ntasks = 0;
  whole.id = parts.front().id;
  for (const StepPlan& part : parts) {
    if (part.verdict != StepVerdict::starts) return part;
    append_component(whole, part);
  }
  return whole;
}

JobFacts join_jobs(std::span<const JobFacts> components) {
  if (components.empty()) return {};
  JobFacts whole = components.front();
  if (components.size() == 1) return whole;
  whole.memory.reset();  // each component has its own
  for (const JobFacts& part : components.subspan(1)) {
    auto& nodes = whole.allocation.nodes;
    nodes.insert(nodes.end(), part.allocation.nodes.begin(), part.allocation.nodes.end());
  }
  std::ranges::sort(whole.allocation.nodes, {}, &cluster::NodeShare::node);
  return whole;
}

std::vector<StepPlan> place_step_components(const cluster::Cluster& cluster, const JobFacts& job,
                                            const std::vector<request::Request>& components,
                                            StepState& state) {
  std::vector<StepPlan> plans;
  std::vector<std::size_t> used;
  std::size_t rotation = state.rotation;
  for (const request::Request& srun : components) {
    StepPlan plan;
    plan.id = state.next_id();
    auto ask = component_ask(cluster, job, srun, used, plan.warnings);
    if (ask) {
      rotation = place_ask(cluster, job, *std::move(ask), state.running(), rotation, plan);
    } else {
      plan.error = ask.error();
    }
    plans.push_back(std::move(plan));
    if (plans.back().verdict != StepVerdict::starts) return plans;
    for (const StepNode& node : plans.back().nodes) {
      const auto& nodes = job.allocation.nodes;
      const auto at = std::ranges::find(nodes, node.share.node, &cluster::NodeShare::node);
      used.push_back(static_cast<std::size_t>(at - nodes.begin()));
    }
  }
  state.rotation = rotation;
  return plans;
}

}  // namespace berth::place
