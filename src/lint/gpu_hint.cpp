// Tries changed requests: a hint that would be refused is worse than none.
#include "lint/gpu_hint.h"

#include <fmt/format.h>

#include <map>

#include "cluster/usage.h"
#include "place/environment.h"
#include "request/parse.h"

namespace berth::lint {
namespace {

using request::GresAsk;
using request::Request;

std::string type_of(const Request& request) {
  std::string type;
  for (const auto* asks : {&request.gres_per_node, &request.gres_per_job, &request.gres_per_socket,
                           &request.gres_per_task}) {
    for (const GresAsk& ask : *asks) {
      if (ask.name != "gpu") continue;
      if (ask.type.empty() || (!type.empty() && type != ask.type)) return {};
      type = ask.type;
    }
  }
  return type;
}

Request with_per_task(const Request& request, std::uint64_t per_task) {
  Request changed = request;
  const std::string type = type_of(request);
  for (auto* asks : {&changed.gres_per_node, &changed.gres_per_job, &changed.gres_per_socket,
                     &changed.gres_per_task}) {
    std::erase_if(*asks, [](const GresAsk& ask) { return ask.name == "gpu"; });
  }
  GresAsk ask;
  ask.name = "gpu";
  ask.type = type;
  ask.count = per_task;
  changed.gres_per_task.push_back(std::move(ask));
  return changed;
}

place::JobFacts facts_of(const Job& job) {
  place::JobFacts known;
  known.request = *job.request;
  known.counts = job.plan->counts;
  known.allocation = job.plan->allocation;
  known.partition = job.plan->partition;
  known.time_limit_minutes = job.plan->time_limit_minutes;
  known.memory = job.plan->memory;
  return known;
}

/// Every task has so many GPUs, and no two of a node the same.
bool gives_own_gpus(const place::StepPlan& plan, std::uint64_t per_task) {
  if (plan.verdict != place::StepVerdict::starts || plan.tasks.empty()) return false;
  std::map<cluster::NodeIndex, Bits> taken;
  for (const place::TaskPlan& task : plan.tasks) {
    Bits& here = taken[task.node];
    const std::size_t before = here.count();
    here |= task.gpus;
    if (task.gpus.count() != per_task || here.count() != before + per_task) return false;
  }
  return true;
}

}  // namespace

std::optional<std::size_t> gpus_with_per_task(const Facts& facts, const Job& job,
                                              std::uint64_t per_task) {
  if (facts.input.cluster == nullptr) return std::nullopt;
  const cluster::Usage idle(*facts.input.cluster);
  const place::JobPlan plan =
      place::place_job(*facts.input.cluster, idle, with_per_task(*job.request, per_task));
  if (plan.verdict != place::Verdict::now) return std::nullopt;
  std::size_t sum = 0;
  for (const cluster::NodeShare& node : plan.allocation.nodes) sum += node.gpus().count();
  return sum;
}

bool step_takes_per_task(const Facts& facts, const Job& job, const StepSeen& step,
                         std::uint64_t per_task, bool instead) {
  if (facts.input.cluster == nullptr || !job.placed() || step.command == nullptr ||
      step.request == nullptr) {
    return false;
  }
  const place::JobFacts known = facts_of(job);
  Request changed;
  if (instead) {
    changed = with_per_task(*step.request, per_task);
  } else {
    request::Surroundings around;
    around.environment = place::batch_environment(*facts.input.cluster, known);
    around.inside_job = true;
    std::vector<std::string> words = {
        fmt::format("--gpus-per-task={}{}", gpu_type_prefix(job), per_task)};
    words.insert(
        words.end(),
        step.command->words.begin() + static_cast<std::ptrdiff_t>(step.command->arguments_at),
        step.command->words.end());
    auto parsed = request::parse(request::Command::srun, words, "", around);
    if (!parsed || parsed->components.size() != 1) return false;
    changed = std::move(parsed->components.front());
  }
  place::StepState state(known);
  return gives_own_gpus(place::place_step(*facts.input.cluster, known, changed, state), per_task);
}

std::string gpu_type_prefix(const Job& job) {
  const std::string type = type_of(*job.request);
  return type.empty() ? "" : type + ":";
}

}  // namespace berth::lint
