#include "place/step_wait.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::place {
namespace {

using cluster::NodeShare;

/// One amount of one resource on one node, and how much of it running steps hold.
struct Shortage {
  std::string need;  // "2 GPUs"
  std::string unit;  // "", " MB"
  std::uint64_t held = 0;
  std::uint64_t total = 0;
  std::vector<std::uint32_t> steps;
};

std::uint64_t amount(const NodeShare& share, StepObstacle what, const std::string& name) {
  switch (what) {
    case StepObstacle::memory:
      return share.memory_mb;
    case StepObstacle::gres: {
      const auto* gres = share.find(name);
      return gres == nullptr ? 0 : gres->total();
    }
    default:
      return share.cpus;
  }
}

void add_holders(Shortage& shortage, const StepRoom& room, StepObstacle what,
                 std::span<const StepPlan> running) {
  for (const StepPlan& step : running) {
    if (!step.counted) continue;
    for (const StepNode& node : step.nodes) {
      if (node.share.node != room.job->node) continue;
      const std::uint64_t units = amount(node.share, what, room.missing);
      if (units == 0) continue;
      shortage.held += units;
      shortage.steps.push_back(step.id);
    }
  }
}

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string gres_need(const StepAsk& ask, const StepRoom& room) {
  for (const StepGres& gres : ask.gres) {
    if (gres.name != room.missing) continue;
    std::uint64_t count = 0;
    for (const auto& one : gres_needed(room, gres, 1, {})) count += one.count;
    const std::string word = gres.name == "gpu" ? "GPU" : gres.name;
    return counted(std::max<std::uint64_t>(count, 1), word);
  }
  return {};
}

std::string cpu_need(const StepAsk& ask, const StepRoom& room) {
  if (!ask.exact) return fmt::format("all {}", counted(room.job->cpus, "CPU"));
  return counted(ask.task_cpus(), "CPU");
}

Shortage shortage_on(const StepAsk& ask, const StepRoom& room, std::span<const StepPlan> running) {
  Shortage shortage;
  shortage.total = amount(*room.job, room.obstacle, room.missing);
  add_holders(shortage, room, room.obstacle, running);
  switch (room.obstacle) {
    case StepObstacle::memory:
      shortage.need = fmt::format("{} MB of memory", ask.memory ? ask.memory->mb : 0);
      shortage.unit = " MB";
      break;
    case StepObstacle::gres:
      shortage.need = gres_need(ask, room);
      break;
    default:
      shortage.need = cpu_need(ask, room);
      break;
  }
  return shortage;
}

std::string step_names(const std::vector<std::uint32_t>& steps) {
  return fmt::format("{} {}", steps.size() == 1 ? "step" : "steps", fmt::join(steps, ", "));
}

void remember(std::vector<std::uint32_t>& all, const std::vector<std::uint32_t>& more) {
  for (const std::uint32_t id : more) {
    if (std::ranges::find(all, id) == all.end()) all.push_back(id);
  }
}

/// No node alone is in the way: together they have too little.
StepWait joint_wait(const StepAsk& ask, std::span<const StepPlan> running) {
  StepWait wait;
  std::uint64_t held = 0;
  for (const StepPlan& step : running) {
    if (!step.counted) continue;
    remember(wait.steps, {step.id});
    for (const StepNode& node : step.nodes) held += node.share.cpus;
  }
  if (wait.steps.empty()) return wait;
  wait.text = fmt::format("{} for {} ({} of {} held by {})", counted(ask.cpus.value_or(1), "CPU"),
                          counted(ask.tasks.value_or(1), "task"), held, ask.job_cpus,
                          step_names(wait.steps));
  return wait;
}

}  // namespace

StepWait explain_wait(const StepAsk& ask, std::span<const StepRoom> rooms,
                      std::span<const StepPlan> running) {
  StepWait wait;
  for (const StepRoom& room : rooms) {
    const bool listed =
        ask.listed.empty() || std::ranges::find(ask.listed, room.position) != ask.listed.end();
    if (room.candidate() || !listed) continue;
    const Shortage shortage = shortage_on(ask, room, running);
    if (shortage.steps.empty()) continue;
    remember(wait.steps, shortage.steps);
    if (!wait.text.empty()) continue;  // the first node names the cause, the others only add steps
    wait.text =
        fmt::format("{} on {} ({} of {}{} held by {})", shortage.need, room.node->name,
                    shortage.held, shortage.total, shortage.unit, step_names(shortage.steps));
  }
  return wait.text.empty() ? joint_wait(ask, running) : wait;
}

}  // namespace berth::place
