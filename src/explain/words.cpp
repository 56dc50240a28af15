// The normalised request as one sentence.
#include "explain/words.h"

#include <fmt/format.h>

#include <vector>

#include "text/duration.h"
#include "text/size.h"
#include "text/tres.h"

namespace berth::explain {
namespace {

using request::GresAsk;
using request::Request;

/// Nodes that are certain: allocated, or fixed by the request.
std::optional<std::uint32_t> node_count(const Request& request, const place::JobPlan& plan) {
  if (!plan.allocation.nodes.empty()) {
    return static_cast<std::uint32_t>(plan.allocation.nodes.size());
  }
  if (request.nodes && request.nodes->min == request.nodes->max) return request.nodes->min;
  return std::nullopt;
}

std::string gpu_noun(const GresAsk& ask) {
  const std::string name = ask.name == "gpu" ? "GPU" : ask.name;
  return ask.type.empty() ? name : ask.type + " " + name;
}

/// A product that stops at the most there can be instead of wrapping round.
std::uint64_t times(std::uint64_t count, std::uint64_t by) {
  return by != 0 && count > request::kMostDevices / by ? request::kMostDevices : count * by;
}

/// Absurd (and negative) counts are not repeated as if they were meant.
std::string device_count(std::uint64_t count, const request::GresAsk& ask) {
  if (ask.name == text::kGpuMemory) return text::format_mb(count) + " of a GPU's memory";
  if (count >= request::kMostDevices) return "an impossible number of GPUs";
  return counted(count, gpu_noun(ask));
}

std::string nodes_part(const Request& request, std::optional<std::uint32_t> nodes) {
  if (nodes) return counted(*nodes, "node");
  if (!request.nodes) return "";
  return fmt::format("{} to {} nodes", request.nodes->min, request.nodes->max);
}

/// GPUs and other devices, with the sum where one follows.
void add_devices(std::vector<std::string>& parts, const Request& request,
                 std::optional<std::uint32_t> nodes, std::optional<std::uint32_t> tasks) {
  bool nodes_said = false;
  for (const GresAsk& ask : request.gres_per_node) {
    if (ask.count == 0) continue;
    if (nodes) {
      parts.push_back(
          fmt::format("{} × {}", counted(*nodes, "node"), device_count(ask.count, ask)));
      if (*nodes > 1) {
        parts.back() += fmt::format(" = {}", device_count(times(ask.count, *nodes), ask));
      }
    } else {
      parts.push_back(fmt::format("{} per node", device_count(ask.count, ask)));
    }
    nodes_said = nodes.has_value();
  }
  const std::string count = nodes_part(request, nodes);
  if (!nodes_said && !count.empty()) parts.insert(parts.begin(), count);
  for (const GresAsk& ask : request.gres_per_job) {
    if (ask.count > 0) parts.push_back(device_count(ask.count, ask) + " in all");
  }
  for (const GresAsk& ask : request.gres_per_socket) {
    if (ask.count > 0) parts.push_back(device_count(ask.count, ask) + " per socket");
  }
  for (const GresAsk& ask : request.gres_per_task) {
    if (ask.count == 0) continue;
    parts.push_back(device_count(ask.count, ask) + " per task");
    if (tasks && *tasks > 1) {
      parts.back() += fmt::format(" = {}", device_count(times(ask.count, *tasks), ask));
    }
  }
}

void add_tasks(std::vector<std::string>& parts, const Request& request,
               const request::Counts& counts, std::optional<std::uint32_t> nodes) {
  const bool per_node = request.ntasks_per_node && !request.ntasks;
  if (per_node) {
    std::string text = counted(*request.ntasks_per_node, "task") + " per node";
    if (nodes && *nodes > 1) {
      text +=
          fmt::format(" = {}", counted(std::uint64_t{*request.ntasks_per_node} * *nodes, "task"));
    }
    parts.push_back(std::move(text));
  } else if (request.ntasks || request.ntasks_per_gpu || !request.gres_per_task.empty()) {
    if (counts.tasks) parts.push_back(counted(*counts.tasks, "task"));
    if (request.ntasks && request.ntasks_per_node) {
      parts.back() += fmt::format(" (at most {} on a node)", *request.ntasks_per_node);
    }
  }
  if (request.ntasks_per_gpu) {
    parts.push_back(counted(*request.ntasks_per_gpu, "task") + " per GPU");
  }
  if (request.cpus_per_task) parts.push_back(counted(*request.cpus_per_task, "CPU") + " per task");
  if (request.cpus_per_gpu) parts.push_back(counted(*request.cpus_per_gpu, "CPU") + " per GPU");
}

bool has_gpus(const Request& request) {
  for (const auto* asks : {&request.gres_per_node, &request.gres_per_job, &request.gres_per_socket,
                           &request.gres_per_task}) {
    for (const GresAsk& ask : *asks) {
      if (ask.name == "gpu" && ask.count > 0) return true;
    }
  }
  return false;
}

std::string bound_to(const request::GpuBind& bind) {
  switch (bind.kind) {
    case request::GpuBindKind::none:
      return "no binding: every task sees all GPUs of its node";
    case request::GpuBindKind::closest:
      return "each task sees the GPUs near its CPUs";
    case request::GpuBindKind::single:
      return bind.count == 1
                 ? "each task sees one GPU of its own"
                 : fmt::format("each task sees one GPU, shared by {} tasks", bind.count);
    case request::GpuBindKind::per_task:
      return bind.count == 1 ? "each task sees its own GPU"
                             : fmt::format("each task sees its own {} GPUs", bind.count);
    case request::GpuBindKind::map:
    case request::GpuBindKind::mask:
      return "each task sees the GPUs listed for it";
  }
  return "";
}

void add_binding(std::vector<std::string>& parts, const Request& request,
                 const place::JobPlan& plan) {
  if (!has_gpus(request)) return;
  if (plan.counts.gpu_bind) {
    parts.push_back(bound_to(*plan.counts.gpu_bind));
    return;
  }
  std::optional<std::size_t> each;
  for (const cluster::NodeShare& share : plan.allocation.nodes) {
    const std::size_t here = share.gpus().count();
    if (each && *each != here) each = 0;
    if (!each) each = here;
  }
  if (!each && request::total_of(request.gres_per_node, "gpu") == 1) each = 1;
  if (each && *each == 1) return;  // nothing to choose
  parts.push_back(each == 2 ? std::string("no binding: every task sees both")
                  : each && *each > 0
                      ? fmt::format("no binding: every task sees all {}", *each)
                      : std::string("no binding: every task sees all GPUs of its node"));
}

void add_memory(std::vector<std::string>& parts, const Request& request) {
  if (!request.memory) return;
  if (request.memory->mb == 0) {
    parts.emplace_back("all the memory of its nodes");
    return;
  }
  const char* per = request.memory->per == request::MemoryPer::node  ? "node"
                    : request.memory->per == request::MemoryPer::cpu ? "CPU"
                                                                     : "GPU";
  parts.push_back(fmt::format("{} of memory per {}", text::format_mb(request.memory->mb), per));
}

}  // namespace

std::string counted(std::uint64_t n, std::string_view noun) {
  const char* plural = noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : plural);
}

std::string time_in_words(std::uint32_t minutes) {
  if (minutes < 60) return fmt::format("{} min", minutes);
  std::vector<std::string> parts;
  if (minutes >= 1440) parts.push_back(counted(minutes / 1440, "day"));
  if (minutes % 1440 >= 60) parts.push_back(fmt::format("{} h", minutes % 1440 / 60));
  if (minutes % 60 > 0) parts.push_back(fmt::format("{} min", minutes % 60));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string in_words(const Request& request, const place::JobPlan& plan) {
  std::vector<std::string> parts;
  const auto nodes = node_count(request, plan);
  add_devices(parts, request, nodes, plan.counts.tasks);
  add_tasks(parts, request, plan.counts, nodes);
  add_binding(parts, request, plan);
  add_memory(parts, request);
  if (request.exclusive == request::Exclusive::node) parts.emplace_back("whole nodes");
  if (request.time_limit) {
    parts.push_back(*request.time_limit ? time_in_words(**request.time_limit)
                                        : std::string("no time limit"));
  }
  if (const auto idle = request.gpu_idle_seconds.value_or(std::nullopt)) {
    parts.push_back("ended when its GPUs are idle for " + text::spoken_seconds(*idle));
  }
  if (!plan.partition.empty()) parts.push_back("partition " + plan.partition);
  if (request.constraint) parts.push_back("constraint " + *request.constraint);
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace berth::explain
