#include "place/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "place/examine.h"
#include "text/duration.h"
#include "text/hostlist.h"
#include "text/size.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::place {
namespace {

using cluster::Cluster;
using cluster::Node;
using cluster::NodeIndex;
using cluster::Partition;
using cluster::Usage;
using cluster::UsageView;
using request::Command;
using request::Request;

std::string device_word(const DeviceAsk& want) {
  if (want.least_memory_mb > 0 && want.is_gpu()) {
    return fmt::format("{} with {} of memory or more", want.type.empty() ? "GPUs" : want.type,
                       text::format_mb(want.least_memory_mb));
  }
  if (want.name == text::kGpuMemory) return "GPU memory";
  if (!want.type.empty()) return want.type;
  return want.name == "gpu" ? "GPUs" : want.name == "shard" ? "shards" : want.name;
}

std::string asked_words(const Ask& ask, const Offer& offer) {
  switch (offer.cause) {
    case Cause::devices:
      return fmt::format("not enough {}", device_word(ask.devices[offer.device]));
    case Cause::near_cores:
      return "not enough cores near its GPUs";
    case Cause::memory:
      return "not enough memory";
    case Cause::cpus:
      return "not enough CPUs";
    case Cause::sockets:
      return "not enough usable sockets";
    case Cause::cores_per_socket:
      return "too few cores per socket";
    case Cause::threads:
      return "too few threads per core";
    case Cause::tasks:
      return "no room for the tasks per node";
    case Cause::tmp_disk:
      return "not enough temporary disk";
    case Cause::closed:
      return "held by an exclusive job";
    case Cause::busy_exclusive:
      return "in use, and the job wants it for itself";
    case Cause::none:
      return "fits";
  }
  return {};
}

/// Counts beyond anything that exists (and negative ones) are not repeated as if they were meant.
std::string asked_count(std::uint64_t asked) {
  return asked >= request::kMostDevices ? "more than there can be" : std::to_string(asked);
}

/// What is there and may not be had, with the limit that says so.
std::string limit_words(const Ask& ask, const Node& node, Cause cause) {
  if (cause == Cause::memory && ask.max_memory_per_node &&
      *ask.max_memory_per_node < node.usable_memory_mb()) {
    return fmt::format(" (MaxMemPerNode={})", *ask.max_memory_per_node);
  }
  if (cause != Cause::cpus && cause != Cause::tasks) return {};
  if (!ask.gpu_job && node.gpu_cores.any()) {
    return fmt::format(" ({} of {} cores are kept for GPU jobs)", node.gpu_cores.count(),
                       node.cores());
  }
  if (ask.max_cpus_per_node && *ask.max_cpus_per_node < node.cpus()) {
    return fmt::format(" (MaxCPUsPerNode={})", *ask.max_cpus_per_node);
  }
  if (ask.max_cpus_per_socket &&
      *ask.max_cpus_per_socket < node.cores_per_socket * node.threads_per_core) {
    return fmt::format(" (MaxCPUsPerSocket={})", *ask.max_cpus_per_socket);
  }
  return {};
}

std::string miss_words(const Ask& ask, const Node& node, const Offer& offer) {
  const std::string limit = limit_words(ask, node, offer.cause);
  switch (offer.cause) {
    case Cause::devices: {
      const DeviceAsk& want = ask.devices[offer.device];
      if (want.name == text::kGpuMemory) {
        return fmt::format("closest: a GPU of {} has {} of memory for it, asked {}", node.name,
                           text::format_mb(offer.have), text::format_mb(offer.asked));
      }
      return fmt::format("closest: {} has {} {}, asked {}", node.name, offer.have,
                         device_word(want), asked_count(offer.asked));
    }
    case Cause::near_cores:
      return fmt::format("closest: {} has {} CPUs near the GPUs, asked {}", node.name, offer.have,
                         offer.asked);
    case Cause::memory:
      return fmt::format("closest: {} has {} of memory, asked {}{}", node.name,
                         text::format_mb(offer.have), text::format_mb(offer.asked), limit);
    case Cause::cpus:
    case Cause::tasks:
      return fmt::format("closest: {} has {} CPUs for it, asked {}{}", node.name, offer.have,
                         offer.asked, limit);
    case Cause::sockets:
      return fmt::format("closest: {} has {} usable sockets, asked {}", node.name, offer.have,
                         offer.asked);
    case Cause::cores_per_socket:
      return fmt::format("closest: {} has {} cores per socket, asked {}", node.name, offer.have,
                         offer.asked);
    case Cause::threads:
      return fmt::format("closest: {} has {} threads per core, asked {}", node.name, offer.have,
                         offer.asked);
    case Cause::tmp_disk:
      return fmt::format("closest: {} has {} MB of temporary disk, asked {}", node.name, offer.have,
                         offer.asked);
    case Cause::closed:
    case Cause::busy_exclusive:
    case Cause::none:
      return {};
  }
  return {};
}

/// A node's fault on paper, as an offer, so that both kinds are compared and worded alike.
Offer static_offer(const Ask& ask, const Node& node, StaticFault fault) {
  Offer offer;
  switch (fault) {
    case StaticFault::cpus:
      offer.cause = Cause::cpus;
      offer.have = node.cpus();
      offer.asked = ask.min_cpus_per_node;
      break;
    case StaticFault::memory:
      offer.cause = Cause::memory;
      offer.have = ask.memory_limit(node);
      offer.asked = ask.memory->mb;
      break;
    case StaticFault::shape: {
      // The first of sockets, cores per socket and threads per core that is too small.
      const auto lacks = [&](Cause cause, std::uint32_t have, std::optional<std::uint32_t> asked) {
        if (offer.cause != Cause::none || asked.value_or(0) <= have) return;
        offer.cause = cause;
        offer.have = have;
        offer.asked = *asked;
      };
      lacks(Cause::sockets, node.sockets, ask.sockets_per_node);
      lacks(Cause::cores_per_socket, node.cores_per_socket, ask.cores_per_socket);
      lacks(Cause::threads, node.threads_per_core, ask.threads_per_core);
      break;
    }
    case StaticFault::tmp_disk:
      offer.cause = Cause::tmp_disk;
      offer.have = node.tmp_disk_mb;
      offer.asked = ask.tmp_mb;
      break;
    case StaticFault::none:
      break;
  }
  return offer;
}

/// GPUs that are not given out, where devices are what lacks.
std::string out_words(const Node& node) {
  if (node.gpus_out.empty()) return {};
  const std::size_t count = node.gpus_out.size();
  return fmt::format("; {} GPU{} out of service ({})", count, count == 1 ? " is" : "s are",
                     node.gpus_out.begin()->second);
}

/// How near an offer came: the share of what was asked.
double nearness(const Offer& offer) {
  if (offer.asked == 0) return 0;
  return static_cast<double>(std::min(offer.have, offer.asked)) / static_cast<double>(offer.asked);
}

/// Where one node has to give all that the job wants, what it lacks of the job's totals.
void lack_of_totals(const Ask& ask, Offer& offer) {
  if (!offer.usable() || ask.max_nodes != 1U) return;
  for (std::size_t d = 0; d < ask.devices.size(); ++d) {
    if (offer.devices[d] >= ask.devices[d].per_job) continue;
    offer.cause = Cause::devices;
    offer.device = d;
    offer.have = offer.free_units[d];
    offer.asked = ask.devices[d].per_job;
    return;
  }
  if (offer.cpus >= ask.total_cpus) return;
  offer.cause = Cause::cpus;
  offer.have = offer.cpus;
  offer.asked = ask.total_cpus;
}

/// Counts the causes over the partition's nodes and finds the nearest miss.
Reasons gather_reasons(const Cluster& cluster, const UsageView& usage, const Partition& partition,
                       const Request& request, const Ask& ask, const FeatureAsk& features,
                       bool only_up) {
  Reasons reasons;
  const std::set<std::string> excluded(request.exclude.begin(), request.exclude.end());
  Examination exam(ask, !only_up);
  const Gathered start{std::vector<std::uint64_t>(ask.devices.size(), 0), 1};
  double best = 0;  // a node with nothing of it is not "closest"
  std::vector<std::uint64_t> units(ask.devices.size(), 0);
  std::uint64_t usable_nodes = 0;
  const std::set<std::string> listed(request.nodelist.begin(), request.nodelist.end());
  const bool only_listed = !listed.empty() && listed.size() >= ask.max_nodes.value_or(~0U);
  for (NodeIndex i : partition.nodes) {
    const Node& node = cluster.nodes[i];
    if (only_listed && !listed.contains(node.name)) continue;
    if (excluded.contains(node.name)) {
      ++reasons.nodes_by_cause["excluded by --exclude"];
      continue;
    }
    if (!features.filter.matches(node)) {
      ++reasons.nodes_by_cause["lacks the features asked for"];
      continue;
    }
    if (!node.usable) {
      ++reasons.nodes_by_cause["down or drained"];
      if (only_up) continue;
    }
    const StaticFault fault = static_fault(ask, node);
    Offer offer = fault == StaticFault::none
                      ? exam.examine(node, usage.class_of(i), usage.at(i), start, Pass::any)
                      : static_offer(ask, node, fault);
    if (ask.max_nodes == 1U || listed.contains(node.name)) lack_of_totals(ask, offer);
    if (offer.usable()) {
      ++usable_nodes;
      for (std::size_t d = 0; d < units.size(); ++d) units[d] += offer.devices[d];
      continue;
    }
    const Bits* bounded = usage.at(i).bounded_cores(ask.bound);
    const bool others_have = bounded != nullptr && bounded->any();
    ++reasons.nodes_by_cause[asked_words(ask, offer) +
                             (others_have ? limit_words(ask, node, offer.cause) : "") +
                             (only_up && offer.cause == Cause::devices ? out_words(node) : "")];
    if (nearness(offer) > best) {
      best = nearness(offer);
      reasons.nearest_miss = miss_words(ask, node, offer);
    }
  }
  if (usable_nodes == 0) {
    const auto down = reasons.nodes_by_cause.find("down or drained");
    if (reasons.nearest_miss.empty() && down != reasons.nodes_by_cause.end()) {
      reasons.nearest_miss = fmt::format("{} of the {} nodes of partition {} are down or drained",
                                         down->second, partition.nodes.size(), partition.name);
    }
    return reasons;
  }
  for (std::size_t d = 0; d < units.size(); ++d) {
    const DeviceAsk& want = ask.devices[d];
    if (want.per_job > units[d]) {
      reasons.nearest_miss = fmt::format("{} can give {} {} in all, asked {}", partition.name,
                                         units[d], device_word(want), asked_count(want.per_job));
      return reasons;
    }
  }
  // A named node that lacks something says more than the sum of the others.
  if (!listed.empty() && best > 0) return reasons;
  if (usable_nodes < ask.min_nodes) {
    const std::string closest = reasons.nearest_miss.empty() ? "" : "; " + reasons.nearest_miss;
    reasons.nearest_miss = fmt::format("{} of the {} nodes asked for can be used{}", usable_nodes,
                                       ask.min_nodes, closest);
  } else {
    reasons.nearest_miss = fmt::format(
        "{} nodes could be used one by one, but not {} of them together for {} CPUs", usable_nodes,
        ask.max_nodes ? fmt::format("at most {}", *ask.max_nodes) : "any number", ask.total_cpus);
  }
  return reasons;
}

std::string reasons_hint(const Reasons& reasons) {
  std::string hint = reasons.nearest_miss;
  std::vector<std::string> causes;
  for (const auto& [cause, count] : reasons.nodes_by_cause) {
    causes.push_back(fmt::format("{} node{}: {}", count, count == 1 ? "" : "s", cause));
  }
  if (!causes.empty())
    hint += fmt::format("{}({})", hint.empty() ? "" : " ", fmt::join(causes, "; "));
  return hint;
}

/// The line Slurm prints when one number is beyond every node of the partition.
std::string static_line(const Cluster& cluster, const Partition& partition, const Ask& ask) {
  std::set<StaticFault> faults;
  for (NodeIndex i : partition.nodes) faults.insert(static_fault(ask, cluster.nodes[i]));
  if (faults.contains(StaticFault::none) || faults.empty()) return {};
  if (faults.contains(StaticFault::cpus) && faults.size() == 1) {
    return "CPU count per node can not be satisfied";
  }
  if (faults.contains(StaticFault::memory)) return "Memory specification can not be satisfied";
  if (faults.contains(StaticFault::shape)) {
    return "Socket, core and/or thread specification can not be satisfied";
  }
  return {};
}

/// "no type 'h100'; have a100:18, tesla_v100:2" where an asked type exists nowhere.
std::string unknown_type_hint(const Cluster& cluster, const Ask& ask) {
  for (const DeviceAsk& want : ask.devices) {
    if (want.type.empty()) continue;
    std::map<std::string, std::uint64_t> types;
    for (const Node& node : cluster.nodes) {
      const cluster::Gres* gres = node.find_gres(want.name);
      if (gres == nullptr) continue;
      for (const cluster::Device& device : gres->devices) {
        types[device.type.empty() ? "untyped" : device.type] += device.units;
      }
    }
    if (types.contains(want.type)) continue;
    std::vector<std::string> have;
    std::vector<std::string> names;
    for (const auto& [type, count] : types) {
      have.push_back(fmt::format("{}:{}", type, count));
      names.push_back(type);
    }
    const std::string near = text::nearest(want.type, names);
    std::string hint = fmt::format("there is no {} of type '{}'", want.name, want.type);
    if (!near.empty()) hint += fmt::format("; did you mean '{}'?", near);
    if (!have.empty()) hint += fmt::format(" (have {})", fmt::join(have, ", "));
    return hint;
  }
  return {};
}

/// The most units that one GPU of the partition has.
std::uint64_t largest_share(const Cluster& cluster, const Partition& partition,
                            const DeviceAsk& want) {
  std::uint64_t largest = 0;
  for (NodeIndex i : partition.nodes) {
    const cluster::Gres* gres = cluster.nodes[i].find_gres(want.name);
    if (gres == nullptr) continue;
    for (const cluster::Device& device : gres->devices) largest = std::max(largest, device.units);
  }
  return largest;
}

}  // namespace

Error allocation_error(Command command, Code code, std::string hint, std::string extra_line) {
  const std::string_view prefix = command == Command::sbatch ? "Batch job submission failed: "
                                  : command == Command::srun ? "Unable to allocate resources: "
                                                             : "Job submit/allocate failed: ";
  Error error;
  error.code = code;
  if (!extra_line.empty()) error.messages.push_back({Severity::error, std::move(extra_line)});
  error.messages.push_back({Severity::error, fmt::format("{}{}", prefix, slurm_text(code))});
  error.hint = std::move(hint);
  return error;
}

StaticFault static_fault(const Ask& ask, const Node& node) {
  if (ask.min_cpus_per_node > node.cpus()) return StaticFault::cpus;
  if (ask.memory_counts && ask.memory && ask.memory->per != request::MemoryPer::gpu &&
      ask.memory->mb > ask.memory_limit(node)) {
    return StaticFault::memory;
  }
  if (ask.sockets_per_node.value_or(0) > node.sockets ||
      ask.cores_per_socket.value_or(0) > node.cores_per_socket ||
      ask.threads_per_core.value_or(0) > node.threads_per_core) {
    return StaticFault::shape;
  }
  if (ask.tmp_mb > node.tmp_disk_mb) return StaticFault::tmp_disk;
  return StaticFault::none;
}

void refuse(JobPlan& plan, const Cluster& cluster, const Usage& usage, const Partition& partition,
            const Request& request, const Ask& ask, const FeatureAsk& features) {
  plan.verdict = Verdict::never;
  plan.reasons =
      gather_reasons(cluster, UsageView(usage, true), partition, request, ask, features, false);
  std::string hint = unknown_type_hint(cluster, ask);
  if (hint.empty()) hint = gpu_memory_hint(cluster, partition, ask);
  if (hint.empty()) {
    for (const std::string& name : request.nodelist) {
      const auto index = cluster.find_node(name);
      if (!std::ranges::binary_search(partition.nodes, *index)) {
        hint = fmt::format("{} is not in partition {}", name, partition.name);
        break;
      }
    }
  }
  if (hint.empty()) hint = reasons_hint(plan.reasons);
  plan.error = allocation_error(request.command, Code::node_config_unavailable, std::move(hint),
                                static_line(cluster, partition, ask));
}

std::string gpu_memory_hint(const Cluster& cluster, const Partition& partition, const Ask& ask) {
  for (const DeviceAsk& want : ask.devices) {
    const bool part = want.name == text::kGpuMemory;
    const std::uint64_t least = std::max(want.least_memory_mb, part ? want.per_node : 0);
    if (least == 0) continue;
    std::map<std::uint64_t, std::uint64_t> sizes;  // known memory → GPUs
    for (const NodeIndex index : partition.nodes) {
      const cluster::Gres* gres = cluster.nodes[index].find_gres(want.name);
      if (gres == nullptr) continue;
      for (const cluster::Device& device : gres->devices) ++sizes[device.known_memory_mb()];
    }
    const std::uint64_t unknown = sizes.contains(0) ? sizes.at(0) : 0;
    sizes.erase(0);
    if (sizes.empty()) {
      return fmt::format(
          "{}: the memory of GPUs is not known in partition {}; their nodes have not told it, "
          "and no type says it (as in a100_80gb)",
          part ? "--gpu-mem" : "--gpu-mem-min", partition.name);
    }
    if (sizes.rbegin()->first >= least) continue;
    std::vector<std::string> have;
    for (const auto& [mb, count] : sizes) {
      have.push_back(fmt::format("{} with {}", count, text::format_mb(mb)));
    }
    if (unknown > 0) have.push_back(fmt::format("{} whose memory is not known", unknown));
    return fmt::format("no GPU of partition {} has {} of memory (have {})", partition.name,
                       text::format_mb(least), fmt::join(have, ", "));
  }
  return {};
}

void explain_shares(JobPlan& plan, const Cluster& cluster, const Partition& partition,
                    const Ask& ask) {
  for (const DeviceAsk& want : ask.devices) {
    if (!want.shares_gpu()) continue;
    const std::uint64_t largest = largest_share(cluster, partition, want);
    plan.reasons.nearest_miss = fmt::format(
        "the {} of a node must all come from one GPU, and no GPU has more than {}: it never starts",
        want.name == "shard" ? "shards" : "MPS units", largest);
  }
}

void explain_wait(JobPlan& plan, const Cluster& cluster, const Usage& usage,
                  const Partition& partition, const Request& request, const Ask& ask,
                  const FeatureAsk& features) {
  plan.reasons =
      gather_reasons(cluster, UsageView(usage, false), partition, request, ask, features, true);
}

std::string unavailable_reason(const Cluster& cluster, const Request& request) {
  std::vector<std::string> down;
  for (const std::string& name : request.nodelist) {
    const auto index = cluster.find_node(name);
    if (index && !cluster.nodes[*index].usable) down.push_back(name);
  }
  if (down.empty()) return {};
  return fmt::format("ReqNodeNotAvail, UnavailableNodes:{}", text::compress_hostlist(down));
}

std::string hold_hint(const Cluster& cluster, const Partition& partition, const Ask& ask,
                      std::string_view reason, std::optional<std::uint32_t> time_limit) {
  if (reason == "PartitionTimeLimit") {
    return fmt::format("the time limit {} is above the {} of partition {}",
                       text::format_minutes(time_limit),
                       text::format_minutes(partition.max_time_minutes), partition.name);
  }
  if (reason == "MaxMemPerLimit") {
    return fmt::format("{} of memory on a node asked, MaxMemPerNode={} in partition {}",
                       text::format_mb(ask.memory->mb), *ask.max_memory_per_node, partition.name);
  }
  if (reason == "PartitionDown") {
    return fmt::format("partition {} is down: jobs queue there but do not start", partition.name);
  }
  std::uint64_t cpus = 0;
  for (NodeIndex i : partition.nodes) cpus += cluster.nodes[i].cpus();
  if (ask.min_nodes > partition.nodes.size()) {
    return fmt::format("{} nodes asked, partition {} has {}", ask.min_nodes, partition.name,
                       partition.nodes.size());
  }
  if (partition.max_nodes && ask.min_nodes > *partition.max_nodes) {
    return fmt::format("{} nodes asked, partition {} allows {} a job", ask.min_nodes,
                       partition.name, *partition.max_nodes);
  }
  if (ask.max_nodes && *ask.max_nodes < partition.min_nodes) {
    return fmt::format("at most {} nodes asked, partition {} wants {} or more", *ask.max_nodes,
                       partition.name, partition.min_nodes);
  }
  return fmt::format("{} CPUs asked, partition {} has {}", ask.total_cpus, partition.name, cpus);
}

}  // namespace berth::place
