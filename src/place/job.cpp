// Planning one job: checks names, filters nodes, selects, and words the refusal (§2, §9–§11).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "place/feature.h"
#include "place/names.h"
#include "place/place.h"
#include "place/refusal.h"
#include "place/select.h"
#include "place/share.h"

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

/// Everything that stays the same while one partition is tried.
struct Trial {
  const Cluster& cluster;
  const Partition& partition;
  const Request& request;
  const Ask& ask;
  const FeatureAsk& features;
};

std::vector<NodeIndex> listed_nodes(const Trial& t) {
  std::set<NodeIndex> indices;
  for (const std::string& name : t.request.nodelist) indices.insert(*t.cluster.find_node(name));
  std::vector<NodeIndex> out(indices.begin(), indices.end());
  if (t.request.command == Command::srun && t.request.ntasks && out.size() > *t.request.ntasks) {
    out.resize(*t.request.ntasks);
  }
  if (t.request.contiguous && out.size() > 1) {
    const NodeIndex last = out.back();
    for (NodeIndex i = out.front() + 1; i < last; ++i) indices.insert(i);
    out.assign(indices.begin(), indices.end());
  }
  return out;
}

/// A candidate set for a selection: who may be used, who must be.
struct Field {
  std::vector<NodeIndex> candidates;
  std::vector<NodeIndex> required;
  bool required_missing = false;  // a required node is not among the candidates
};

Field make_field(const Trial& t, const UsageView& usage, const FeatureExpr& filter, bool only_up) {
  Field field;
  std::vector<std::int8_t> fault(usage.class_count(), -1);  // one answer for each class of nodes
  const auto buildable = [&](std::uint32_t hardware_class, const Node& node) {
    std::int8_t& known = fault[hardware_class];
    if (known < 0) known = static_fault(t.ask, node) == StaticFault::none ? 0 : 1;
    return known == 0;
  };
  std::set<NodeIndex> excluded;
  for (const std::string& name : t.request.exclude) excluded.insert(*t.cluster.find_node(name));
  const std::vector<NodeIndex> listed = listed_nodes(t);
  const bool list_is_filter = t.ask.arbitrary.empty() && listed.size() > t.ask.min_nodes;
  field.candidates.reserve(t.partition.nodes.size());
  for (NodeIndex i : t.partition.nodes) {
    const Node& node = t.cluster.nodes[i];
    if (only_up && !node.usable) continue;
    if (!excluded.empty() && excluded.contains(i)) continue;
    if (!filter.matches(node)) continue;
    if (!buildable(usage.class_of(i), node)) continue;
    if (list_is_filter && !std::ranges::binary_search(listed, i)) continue;
    field.candidates.push_back(i);
  }
  if (list_is_filter) return field;
  for (NodeIndex i : listed) {
    if (std::ranges::binary_search(field.candidates, i)) {
      field.required.push_back(i);
    } else {
      field.required_missing = true;
    }
  }
  return field;
}

/// Picks the nodes of [a*1&b*2] item by item; they become required nodes. False: not possible.
bool require_counted(const Trial& t, const UsageView& usage, bool pool_shares, Field& field) {
  for (const FeatureAsk::Counted& item : t.features.counted) {
    Ask sub = t.ask;
    sub.tasks.reset();
    sub.min_nodes = sub.desired_nodes = item.count;
    sub.max_nodes = item.count;
    sub.nodes_range = false;
    sub.sizes.clear();
    sub.total_cpus = item.count;
    for (DeviceAsk& device : sub.devices) device.per_job = device.per_job > 0 ? 1 : 0;
    std::vector<NodeIndex> some;
    for (NodeIndex i : field.candidates) {
      if (item.expr.matches(t.cluster.nodes[i]) && !std::ranges::binary_search(field.required, i)) {
        some.push_back(i);
      }
    }
    const SelectInput in{t.cluster, usage, sub, some, {}, pool_shares};
    const auto taken = select_nodes(in);
    if (!taken) return false;
    for (const Taken& one : *taken) field.required.push_back(one.node);
    std::ranges::sort(field.required);
  }
  return true;
}

cluster::NodeShare base_share(const Trial& t, const UsageView& usage, const Taken& taken,
                              const TasksHere& here) {
  const Node& node = t.cluster.nodes[taken.node];
  cluster::NodeShare share;
  share.node = taken.node;
  share.tasks = here.tasks;
  if (t.ask.exclusive) {
    share.cores = Bits::first_n(node.cores()) - node.reserved_cores;
  } else {
    const std::uint32_t cores = t.ask.cores_for(node, here.tasks, here.cpus);
    share.cores = choose_cores(node, t.ask, offered_cores(node, usage.at(taken.node), taken.offer),
                               cores, here.tasks);
  }
  const auto count = static_cast<std::uint32_t>(share.cores.count());
  share.cpus = count * node.threads_per_core;
  share.usable_cpus = count * t.ask.charged_threads(node);
  return share;
}

/// The node whose memory does not hold what the job would be charged there, if any.
std::optional<NodeIndex> short_of_memory(const Trial& t, const UsageView& usage,
                                         cluster::Allocation& allocation) {
  for (cluster::NodeShare& share : allocation.nodes) {
    const Node& node = t.cluster.nodes[share.node];
    const std::uint64_t gpus = share.find("gpu") != nullptr ? share.find("gpu")->total() : 0;
    share.memory_mb = t.ask.memory_on(t.ask.memory_limit(node), share.usable_cpus, gpus);
    if (t.ask.memory_counts &&
        share.memory_mb + usage.at(share.node).memory_mb > node.usable_memory_mb()) {
      return share.node;
    }
  }
  return std::nullopt;
}

/// What a selection comes to. Memory that depends on the devices picked is known only now: a node
/// that cannot pay for it is left out and the selection made again.
std::optional<cluster::Allocation> allocate(const Trial& t, const UsageView& usage, Field field,
                                            bool pool_shares) {
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const SelectInput in{t.cluster, usage, t.ask, field.candidates, field.required, pool_shares};
    const auto taken = select_nodes(in);
    if (!taken) return std::nullopt;
    cluster::Allocation allocation;
    allocation.whole_nodes = t.ask.exclusive || t.ask.alone;
    const std::vector<TasksHere> tasks = share_tasks(t.cluster, t.ask, *taken);
    for (std::size_t i = 0; i < taken->size(); ++i) {
      allocation.nodes.push_back(base_share(t, usage, (*taken)[i], tasks[i]));
    }
    const bool shares = std::ranges::any_of(t.ask.devices, &DeviceAsk::shares_gpu);
    if (pool_shares && shares) return allocation;  // counted together, so not to be picked
    if (!choose_devices(t.cluster, usage, t.ask, *taken, allocation.nodes)) return std::nullopt;
    const auto poor = short_of_memory(t, usage, allocation);
    if (!poor) return allocation;
    if (std::ranges::binary_search(field.required, *poor)) return std::nullopt;
    std::erase(field.candidates, *poor);
  }
  return std::nullopt;
}

/// One attempt with a filter, including [a|b] alternatives and counted features.
std::optional<cluster::Allocation> try_features(const Trial& t, const UsageView& usage,
                                                const FeatureExpr& filter, bool ever) {
  const auto attempt = [&](const FeatureExpr& with) -> std::optional<cluster::Allocation> {
    Field field = make_field(t, usage, with, !ever);
    if (field.required_missing) return std::nullopt;
    if (!require_counted(t, usage, ever, field)) return std::nullopt;
    return allocate(t, usage, field, ever);
  };
  if (t.features.alternatives.empty()) return attempt(filter);
  for (const FeatureExpr& one : t.features.alternatives) {
    FeatureExpr both{FeatureExpr::Kind::all, {}, {filter, one}};
    if (auto allocation = attempt(both)) return allocation;
  }
  return std::nullopt;
}

std::optional<cluster::Allocation> try_now(const Trial& t, const UsageView& usage) {
  if (t.request.prefer) {
    if (auto wish = parse_features(*t.request.prefer)) {
      wish->filter = FeatureExpr{FeatureExpr::Kind::all, {}, {t.features.filter, wish->filter}};
      const Trial preferring{t.cluster, t.partition, t.request, t.ask, *wish};
      if (auto allocation = try_features(preferring, usage, wish->filter, false)) return allocation;
    }
  }
  return try_features(t, usage, t.features.filter, false);
}

/// Limits of the partition that let a job be accepted but not run.
std::string partition_hold(const Trial& t, std::optional<std::uint32_t> time_limit) {
  std::uint64_t cpus = 0;
  for (NodeIndex i : t.partition.nodes) cpus += t.cluster.nodes[i].cpus();
  if (t.ask.min_nodes > t.partition.nodes.size()) return "PartitionNodeLimit";
  if (t.ask.total_cpus > cpus) return "PartitionConfig";
  if (t.partition.max_nodes && t.ask.min_nodes > *t.partition.max_nodes)
    return "PartitionNodeLimit";
  if (t.ask.max_nodes && *t.ask.max_nodes < t.partition.min_nodes) return "PartitionNodeLimit";
  if (t.partition.state == cluster::PartitionState::down) return "PartitionDown";
  if (t.partition.max_time_minutes &&
      (!time_limit || *time_limit > *t.partition.max_time_minutes)) {
    return "PartitionTimeLimit";
  }
  return {};
}

std::optional<std::uint32_t> time_limit_of(const Request& request, const Partition& partition) {
  if (request.time_limit) return *request.time_limit;
  if (partition.default_time_minutes) return partition.default_time_minutes;
  return partition.max_time_minutes;
}

JobPlan try_partition(const Cluster& cluster, const Usage& usage, const Partition& partition,
                      const Request& request, const request::Counts& counts,
                      const FeatureAsk& features, Detail detail) {
  JobPlan plan;
  plan.counts = counts;
  plan.warnings = counts.warnings;
  plan.partition = partition.name;
  plan.time_limit_minutes = time_limit_of(request, partition);
  const Ask ask = make_ask(cluster, partition, request, counts);
  plan.memory = ask.memory;
  const Trial t{cluster, partition, request, ask, features};
  if (partition.state == cluster::PartitionState::drain ||
      partition.state == cluster::PartitionState::inactive) {
    plan.error = allocation_error(
        request.command, Code::partition_closed,
        fmt::format("partition {} takes no new jobs: it is being drained or switched off",
                    partition.name));
    return plan;
  }
  const std::string hold = partition_hold(t, plan.time_limit_minutes);
  if (!hold.empty() && cluster.settings.enforce_part_limits != cluster::EnforcePartLimits::no) {
    const Code code =
        hold == "PartitionTimeLimit" ? Code::invalid_time_limit : Code::partition_config;
    plan.error = allocation_error(
        request.command, code, hold_hint(cluster, partition, ask, hold, plan.time_limit_minutes));
    return plan;
  }
  if (hold == "PartitionConfig" || hold == "PartitionNodeLimit") {
    plan.verdict = Verdict::pending;
    plan.pending_reason = hold;
    plan.reasons.nearest_miss = hold_hint(cluster, partition, ask, hold, plan.time_limit_minutes);
    return plan;
  }
  if (hold.empty()) {
    if (auto allocation = try_now(t, UsageView(usage, false))) {
      plan.verdict = Verdict::now;
      plan.allocation = std::move(*allocation);
      return plan;
    }
  }
  if (!try_features(t, UsageView(usage, true), features.filter, true)) {
    refuse(plan, cluster, usage, partition, request, ask, features);
    return plan;
  }
  if (!hold.empty()) {
    plan.verdict = Verdict::pending;
    plan.pending_reason = hold;
    plan.reasons.nearest_miss = hold_hint(cluster, partition, ask, hold, plan.time_limit_minutes);
    return plan;
  }
  plan.pending_reason = "Resources";
  const bool shares = std::ranges::any_of(ask.devices, &DeviceAsk::shares_gpu);
  if (shares && !try_features(t, UsageView(usage, true), features.filter, false)) {
    plan.verdict = Verdict::pending;  // accepted by the count of the node, met by no single GPU
    explain_shares(plan, cluster, partition, ask);
    return plan;
  }
  plan.verdict = Verdict::later;
  if (std::string down = unavailable_reason(cluster, request); !down.empty()) {
    plan.pending_reason = std::move(down);
  }
  if (detail == Detail::full) explain_wait(plan, cluster, usage, partition, request, ask, features);
  return plan;
}

int rank(Verdict verdict) {
  switch (verdict) {
    case Verdict::now:
      return 0;
    case Verdict::later:
      return 1;
    case Verdict::pending:
      return 2;
    case Verdict::never:
      return 3;
  }
  return 3;
}

}  // namespace

JobPlan place_job(const Cluster& cluster, const Usage& usage, const Request& request,
                  Detail detail) {
  JobPlan plan;
  auto counts = request::derive_counts(request);
  if (!counts) {
    plan.error = std::move(counts.error());
    return plan;
  }
  plan.counts = *counts;
  plan.warnings = counts->warnings;
  auto names = check_names(cluster, request, *counts);
  if (!names) {
    plan.error = std::move(names.error());
    return plan;
  }
  const bool every_one = cluster.settings.enforce_part_limits == cluster::EnforcePartLimits::all;
  std::optional<JobPlan> best;
  for (const Partition* partition : names->partitions) {
    JobPlan one =
        try_partition(cluster, usage, *partition, request, *counts, names->features, detail);
    if (every_one && one.verdict == Verdict::never) return one;
    if (!best || rank(one.verdict) < rank(best->verdict)) best = std::move(one);
    if (best->verdict == Verdict::now && !every_one) break;
  }
  return std::move(*best);
}

}  // namespace berth::place
