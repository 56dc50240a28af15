#include "place/prepared.h"

#include <fmt/format.h>

#include <algorithm>

#include "place/alternatives.h"
#include "place/attempt.h"
#include "place/network.h"
#include "place/network_words.h"
#include "place/refusal.h"

namespace berth::place {
namespace {

using cluster::Cluster;
using cluster::NodeIndex;
using cluster::Partition;
using cluster::Room;
using cluster::Usage;
using cluster::UsageView;
using request::Request;

/// Limits of the partition that let a job be accepted but not run.
std::string partition_hold(const Trial& t, std::optional<std::uint32_t> time_limit) {
  if (t.ask.min_nodes > t.partition.nodes.size()) return "PartitionNodeLimit";
  if (t.ask.total_cpus > t.partition.nodes.size()) {  // every node has one at least
    std::uint64_t cpus = 0;
    for (NodeIndex i : t.partition.nodes) cpus += t.cluster.nodes[i].cpus();
    if (t.ask.total_cpus > cpus) return "PartitionConfig";
  }
  if (t.partition.max_nodes && t.ask.min_nodes > *t.partition.max_nodes)
    return "PartitionNodeLimit";
  if (t.ask.max_nodes && *t.ask.max_nodes < t.partition.min_nodes) return "PartitionNodeLimit";
  if (t.ask.memory_counts && t.ask.memory && t.ask.max_memory_per_node &&
      t.ask.memory->per == request::MemoryPer::node &&
      t.ask.memory->mb > *t.ask.max_memory_per_node) {
    return "MaxMemPerLimit";
  }
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

/// The least a node must have free for this ask, whatever its build.
Room floor_of(const Cluster& cluster, const Ask& ask) {
  Room floor;
  std::uint64_t cpus = ask.min_cpus_per_node;
  const std::uint64_t per_task = ask.cpus_per_task;
  if (ask.per_node_tasks) cpus = std::max(cpus, *ask.per_node_tasks * per_task);
  if (ask.max_nodes == 1U && ask.tasks && !ask.overcommit) {
    cpus = std::max(cpus, *ask.tasks * per_task);
  }
  const std::uint32_t threads = cluster.most_threads();
  std::uint64_t memory =
      std::min(cluster.least_memory_mb(), ask.max_memory_per_node.value_or(~std::uint64_t{0}));
  floor.cores = static_cast<std::uint32_t>((cpus + threads - 1) / threads);
  for (const DeviceAsk& want : ask.devices) {
    if (!want.is_gpu()) continue;
    std::uint64_t gpus =
        std::max({std::uint64_t{1}, want.per_node, want.per_task, want.per_socket});
    if (ask.max_nodes == 1U) gpus = std::max(gpus, want.per_job);
    floor.gpus += static_cast<std::uint32_t>(gpus);
  }
  if (ask.memory_counts) {
    if (ask.memory) {
      memory = ask.memory->per == request::MemoryPer::node  ? ask.memory->mb
               : ask.memory->per == request::MemoryPer::gpu ? ask.memory->mb * floor.gpus
                                                            : ask.memory->mb * cpus;
    }
    floor.memory_mb = memory;
  }
  floor.idle = ask.exclusive || ask.alone ? 1 : 0;
  return floor;
}

}  // namespace

Prepared::Prepared(const Cluster& cluster, const Request& request, bool equal_weights)
    : cluster_(&cluster), request_(&request) {
  auto counts = request::derive_counts(request);
  if (!counts) {
    error_ = std::move(counts.error());
    return;
  }
  counts_ = std::move(*counts);
  for (Message& warning : network_warnings(cluster, request)) {
    counts_.warnings.push_back(std::move(warning));
  }
  auto names = check_names(cluster, request, counts_);
  if (!names) {
    error_ = std::move(names.error());
    return;
  }
  features_ = std::move(names->features);
  if (request.exclusive == request::Exclusive::topo && !cluster.topology.flat()) {
    error_ = allocation_error(request.command, Code::unsupported,
                              "--exclusive=topo is not supported where there are switches or "
                              "blocks: --exclusive gives whole nodes, -N with the size of a block "
                              "whole blocks");
    return;
  }
  choices_ = alternatives(counts_);
  for (std::size_t i = 0; i < names->partitions.size() * choices_.size(); ++i) {
    const Partition* partition = names->partitions[i / choices_.size()];
    Part part;
    part.partition = partition;
    part.choice = i % choices_.size();
    part.ask = make_ask(cluster, *partition, request, choices_[part.choice]);
    part.time_limit_minutes = time_limit_of(request, *partition);
    part.closed = partition->state == cluster::PartitionState::drain ||
                  partition->state == cluster::PartitionState::inactive;
    const Trial t{cluster, *partition, request, part.ask, features_};
    part.hold = partition_hold(t, part.time_limit_minutes);
    runnable_ = runnable_ || (!part.closed && part.hold.empty());
    parts_.push_back(std::move(part));
  }
  find_lists();
  find_floor(equal_weights);
}

void Prepared::find_lists() {
  for (const std::string& name : request_->exclude) {
    excluded_.push_back(*cluster_->find_node(name));
  }
  std::ranges::sort(excluded_);
  if (request_->nodelist.empty() || parts_.empty()) return;
  const Part& part = parts_.front();
  const Trial t{*cluster_, *part.partition, *request_, part.ask, features_};
  ListedNodes listed = listed_nodes(t);
  (listed.is_filter ? only_ : required_) = std::move(listed.nodes);
}

void Prepared::find_floor(bool equal_weights) {
  bool first = true;
  single_node_ = true;
  takes_the_first_ = cluster_->settings.placement == cluster::Placement::best_fit &&
                     equal_weights && features_.alternatives.empty() && features_.counted.empty() &&
                     !request_->prefer && required_.empty() && parts_.size() == 1;
  for (const Part& part : parts_) {
    if (part.closed || !part.hold.empty()) continue;
    const Room floor = floor_of(*cluster_, part.ask);
    std::uint32_t nodes = std::max(part.ask.min_nodes, 1U);
    if (part.ask.tasks && part.ask.per_node_tasks && *part.ask.per_node_tasks > 0) {
      nodes = std::max(nodes,
                       (*part.ask.tasks + *part.ask.per_node_tasks - 1) / *part.ask.per_node_tasks);
    }
    single_node_ = single_node_ && part.ask.max_nodes == 1U;
    const bool near = network_counts(*cluster_, part.ask);
    asks_network_ = asks_network_ || near;
    takes_the_first_ = takes_the_first_ && single_node_ && !part.ask.least_loaded && !near;
    min_nodes_ = first ? nodes : std::min(min_nodes_, nodes);
    if (first) {
      floor_ = floor;
    } else {
      floor_.lower_to(floor);
    }
    first = false;
  }
}

std::optional<std::uint32_t> Prepared::time_limit_minutes() const {
  for (const Part& part : parts_) {
    if (!part.closed && part.hold.empty()) return part.time_limit_minutes;
  }
  return std::nullopt;
}

bool Prepared::may_use(NodeIndex index) const {
  if (!excluded_.empty() && std::ranges::binary_search(excluded_, index)) return false;
  if (!only_.empty() && !std::ranges::binary_search(only_, index)) return false;
  const cluster::Node& node = cluster_->nodes[index];
  if (!features_.filter.matches(node)) return false;
  return std::ranges::any_of(parts_, [&](const Part& part) {
    return part.hold.empty() && !part.closed &&
           (part.partition->nodes.size() == cluster_->nodes.size() ||
            std::ranges::binary_search(part.partition->nodes, index)) &&
           static_fault(part.ask, node) == StaticFault::none;
  });
}

/// It would run somewhere, were all nodes equally near.
bool Prepared::refused_by_network(const Trial& t, const Usage& usage) const {
  if (!network_counts(*cluster_, t.ask)) return false;
  Ask anywhere = t.ask;
  anywhere.any_network = true;
  const Trial free{t.cluster, t.partition, t.request, anywhere, t.features};
  return try_features(free, UsageView(usage, true), features_.filter, true).has_value();
}

JobPlan Prepared::begin(const Part& part) const {
  JobPlan plan;
  plan.counts = choices_[part.choice];
  plan.warnings = counts_.warnings;
  plan.partition = part.partition->name;
  plan.time_limit_minutes = part.time_limit_minutes;
  plan.memory = part.ask.memory;
  return plan;
}

std::optional<JobPlan> Prepared::now(const UsageView& usage,
                                     std::optional<std::span<const NodeIndex>> within,
                                     bool near_only, bool few_switches) const {
  for (const Part& part : parts_) {
    if (part.closed || !part.hold.empty()) continue;
    Trial t{*cluster_, *part.partition, *request_, part.ask, features_, within, near_only};
    if (few_switches && request_->switches) t.max_leaves = request_->switches->count;
    if (auto allocation = try_now(t, usage)) {
      JobPlan plan = begin(part);
      plan.verdict = Verdict::now;
      plan.allocation = std::move(*allocation);
      return plan;
    }
  }
  return std::nullopt;
}

std::optional<JobPlan> Prepared::as_planned(const std::string& partition,
                                            const cluster::Allocation& allocation) const {
  for (const Part& part : parts_) {
    if (part.closed || !part.hold.empty() || part.partition->name != partition) continue;
    const bool choice = choices_.size() > 1;
    if (choice && !made_of(*cluster_, allocation, choices_[part.choice])) continue;
    JobPlan plan = begin(part);
    plan.verdict = Verdict::now;
    plan.allocation = allocation;
    return plan;
  }
  return std::nullopt;
}

JobPlan Prepared::plan_in(const Part& part, const Usage& usage, Detail detail) const {
  const Cluster& cluster = *cluster_;
  const Request& request = *request_;
  const Partition& partition = *part.partition;
  const Ask& ask = part.ask;
  const std::string& hold = part.hold;
  JobPlan plan = begin(part);
  const Trial t{cluster, partition, request, ask, features_};
  if (part.closed) {
    plan.error = allocation_error(
        request.command, Code::partition_closed,
        fmt::format("partition {} takes no new jobs: it is being drained or switched off",
                    partition.name));
    return plan;
  }
  if (!hold.empty() && cluster.settings.enforce_part_limits != cluster::EnforcePartLimits::no) {
    const Code code = hold == "PartitionTimeLimit" ? Code::invalid_time_limit
                      : hold == "MaxMemPerLimit"   ? Code::memory_unavailable
                                                   : Code::partition_config;
    plan.error = allocation_error(
        request.command, code, hold_hint(cluster, partition, ask, hold, plan.time_limit_minutes));
    return plan;
  }
  if (hold == "PartitionConfig" || hold == "PartitionNodeLimit" || hold == "MaxMemPerLimit") {
    plan.verdict = Verdict::pending;
    plan.pending_reason = hold;
    plan.reasons.nearest_miss = hold_hint(cluster, partition, ask, hold, plan.time_limit_minutes);
    return plan;
  }
  if (hold.empty()) {
    const UsageView free(usage, false);
    Trial few = t;
    if (request.switches) few.max_leaves = request.switches->count;
    if (auto allocation = try_now(few, free)) {
      plan.verdict = Verdict::now;
      plan.allocation = std::move(*allocation);
      return plan;
    }
    if (few.max_leaves) {
      if (auto allocation = try_now(t, free)) {
        plan.verdict = Verdict::later;
        plan.pending_reason = "Resources";
        plan.reasons.nearest_miss = switch_wait_words(cluster, request, *allocation);
        return plan;
      }
    }
  }
  if (!try_features(t, UsageView(usage, true), features_.filter, true)) {
    if (refused_by_network(t, usage)) {
      plan.error = allocation_error(request.command, Code::node_config_unavailable,
                                    network_hint(cluster, request));
    } else {
      refuse(plan, cluster, usage, partition, request, ask, features_);
    }
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
  if (shares && !try_features(t, UsageView(usage, true), features_.filter, false)) {
    plan.verdict = Verdict::pending;  // accepted by the count of the node, met by no single GPU
    explain_shares(plan, cluster, partition, ask);
    return plan;
  }
  plan.verdict = Verdict::later;
  if (std::string down = unavailable_reason(cluster, request); !down.empty()) {
    plan.pending_reason = std::move(down);
  }
  if (detail == Detail::full)
    explain_wait(plan, cluster, usage, partition, request, ask, features_);
  return plan;
}

JobPlan Prepared::plan(const Usage& usage, Detail detail) const {
  if (error_) {
    JobPlan plan;
    plan.counts = counts_;
    plan.warnings = counts_.warnings;
    plan.error = *error_;
    return plan;
  }
  const bool every_one = cluster_->settings.enforce_part_limits == cluster::EnforcePartLimits::all;
  std::optional<JobPlan> best;
  const auto better = [](const JobPlan& one, const std::optional<JobPlan>& other) {
    return !other || rank(one.verdict) < rank(other->verdict);
  };
  for (auto part = parts_.begin(); part != parts_.end();) {
    std::optional<JobPlan> here;  // the best choice in this partition
    for (const auto first = part; part != parts_.end() && part->partition == first->partition;
         ++part) {
      if (here && here->verdict == Verdict::now) continue;
      JobPlan one = plan_in(*part, usage, detail);
      if (better(one, here)) here = std::move(one);
    }
    if (every_one && here->verdict == Verdict::never) return std::move(*here);
    if (better(*here, best)) best = std::move(here);
    if (best->verdict == Verdict::now && !every_one) break;
  }
  return std::move(*best);
}

JobPlan place_job(const Cluster& cluster, const Usage& usage, const Request& request,
                  Detail detail) {
  return Prepared(cluster, request).plan(usage, detail);
}

}  // namespace berth::place
