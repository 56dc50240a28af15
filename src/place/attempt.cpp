#include "place/attempt.h"

#include <algorithm>
#include <set>

#include "place/refusal.h"
#include "place/select.h"
#include "place/share.h"

namespace berth::place {

using cluster::Node;
using cluster::NodeIndex;
using cluster::UsageView;
using request::Command;

ListedNodes listed_nodes(const Trial& t) {
  std::set<NodeIndex> indices;
  for (const std::string& name : t.request.nodelist) indices.insert(*t.cluster.find_node(name));
  std::vector<NodeIndex> out(indices.begin(), indices.end());
  if (t.request.command == Command::srun && t.request.ntasks && out.size() > *t.request.ntasks) {
    out.resize(*t.request.ntasks);
  }
  if (t.ask.contiguous && out.size() > 1) {
    const NodeIndex last = out.back();
    for (NodeIndex i = out.front() + 1; i < last; ++i) indices.insert(i);
    out.assign(indices.begin(), indices.end());
  }
  return {out, t.ask.arbitrary.empty() && out.size() > t.ask.min_nodes};
}

namespace {

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
  const auto [listed, list_is_filter] = listed_nodes(t);
  const std::span<const NodeIndex> among = t.within.value_or(t.partition.nodes);
  const bool everywhere = t.partition.nodes.size() == t.cluster.nodes.size();
  field.candidates.reserve(among.size());
  for (NodeIndex i : among) {
    const Node& node = t.cluster.nodes[i];
    if (t.within && !everywhere && !std::ranges::binary_search(t.partition.nodes, i)) continue;
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
    sub.any_network = true;
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
  share.bound = t.ask.bound;
  share.tasks = here.tasks;
  if (t.ask.exclusive) {
    share.cores = Bits::first_n(node.cores()) - node.reserved_cores;
  } else {
    const std::uint32_t cores = t.ask.cores_for(node, here.tasks, here.cpus);
    share.cores =
        choose_cores(node, t.ask, offered_cores(t.ask, node, usage.at(taken.node), taken.offer),
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
    SelectInput in{t.cluster,      usage,       t.ask,      field.candidates,
                   field.required, pool_shares, t.near_only};
    in.max_leaves = t.max_leaves;
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

}  // namespace

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
      const Trial preferring{t.cluster, t.partition, t.request,   t.ask,
                             *wish,     t.within,    t.near_only, t.max_leaves};
      if (auto allocation = try_features(preferring, usage, wish->filter, false)) return allocation;
    }
  }
  return try_features(t, usage, t.features.filter, false);
}

}  // namespace berth::place
