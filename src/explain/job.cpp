// Placing the components of a job, and its parts in the words of the explanation.
#include "explain/job.h"

#include <algorithm>

#include "text/number.h"
#include "text/tres.h"

namespace berth::explain {
namespace {

place::JobFacts facts_of(const request::Request& request, const place::JobPlan& plan,
                         std::size_t component) {
  place::JobFacts facts;
  facts.id = 1 + static_cast<std::uint32_t>(component);
  facts.request = request;
  facts.counts = plan.counts;
  facts.allocation = plan.allocation;
  facts.partition = plan.partition;
  facts.time_limit_minutes = plan.time_limit_minutes;
  facts.memory = plan.memory;
  facts.name = request::job_name_of(request);
  return facts;
}

/// Plans all components on `usage`; false when one does not start there.
bool plan_on(const Input& input, cluster::Usage usage,
             const std::vector<request::Request>& components, std::vector<place::JobPlan>& plans) {
  bool all = true;
  for (const request::Request& request : components) {
    plans.push_back(place::place_job(*input.cluster, usage, request));
    if (plans.back().verdict == place::Verdict::now) {
      usage.take(plans.back().allocation);
    } else {
      all = false;
    }
  }
  return all;
}

}  // namespace

Job place(const Input& input, const std::vector<request::Request>& components) {
  Job job;
  const bool now = plan_on(input, *input.usage, components, job.plans);
  const std::vector<place::JobPlan>* shown = &job.plans;
  std::vector<place::JobPlan> idle;
  if (!now) {
    const bool later = std::ranges::any_of(job.plans, [](const place::JobPlan& plan) {
      return plan.verdict == place::Verdict::later;
    });
    if (!later || !plan_on(input, cluster::Usage(*input.cluster), components, idle)) return job;
    shown = &idle;
    job.assumes_idle = true;
  }
  for (std::size_t i = 0; i < components.size(); ++i) {
    job.facts.push_back(facts_of(components[i], (*shown)[i], i));
  }
  return job;
}

std::optional<std::uint64_t> array_most(const request::Request& request) {
  const std::size_t percent = request.array ? request.array->find('%') : std::string::npos;
  if (percent == std::string::npos) return std::nullopt;
  const auto most = text::parse_number(std::string_view(*request.array).substr(percent + 1));
  return most ? std::optional<std::uint64_t>(*most) : std::nullopt;
}

std::vector<std::optional<place::JobFacts>> place_array(const Input& input,
                                                        const request::Request& request) {
  std::vector<std::optional<place::JobFacts>> out;
  const std::uint64_t most = array_most(request).value_or(kMaxElements);
  cluster::Usage usage = *input.usage;
  const std::size_t count = std::min<std::size_t>(request.array_indices.count(), kMaxElements);
  std::uint64_t running = 0;
  bool full = false;  // all elements ask for the same: when one has to wait, so have the others
  for (std::size_t i = 0; i < count; ++i) {
    out.emplace_back();
    if (full || running >= most) continue;
    place::JobPlan plan = place::place_job(*input.cluster, usage, request, place::Detail::verdict);
    if (plan.verdict != place::Verdict::now) {
      full = true;
      continue;
    }
    usage.take(plan.allocation);
    ++running;
    out.back() = facts_of(request, plan, i);
  }
  return out;
}

std::vector<std::string> rendered(const std::vector<Message>& messages, request::Command command) {
  std::vector<std::string> lines;
  for (const Message& message : messages) {
    lines.push_back(render(message, request::command_name(command)));
  }
  return lines;
}

Refusal refusal(const Error& error, request::Command command, std::string nearest_miss) {
  Refusal out;
  out.text = std::string(error.what());
  out.exit_code = error.exit_code;
  out.hint = error.hint;
  out.lines = rendered(error.messages, command);
  if (out.lines.empty()) {
    out.lines.push_back(render({Severity::error, out.text}, request::command_name(command)));
  }
  out.nearest_miss = std::move(nearest_miss);
  return out;
}

std::vector<JobNode> job_nodes(const cluster::Cluster& cluster, const place::JobFacts& facts,
                               std::size_t component) {
  std::vector<JobNode> out;
  for (const cluster::NodeShare& share : facts.allocation.nodes) {
    const cluster::Node& node = cluster.nodes[share.node];
    JobNode view;
    view.name = node.name;
    view.cpus = share.cpus;
    view.cpu_mask = node.threads_of(share.cores);
    view.memory_mb = share.memory_mb;
    view.component = component;
    const cluster::Gres* gres = node.find_gres("gpu");
    share.gpus().each([&](std::size_t i) {
      const bool known = gres != nullptr && i < gres->devices.size();
      view.gpus.push_back({i, known ? gres->devices[i].type : ""});
    });
    if (const cluster::GresShare* shards = share.find("shard")) view.shards = shards->total();
    if (const auto* memory = share.find(text::kGpuMemory)) view.gpu_memory_mb = memory->total();
    out.push_back(std::move(view));
  }
  return out;
}

}  // namespace berth::explain
